//! Execs by their id, and contexts.

use bytes::Bytes;
use dayfly_api::{
    Context, ContextList, CreateContext, ExecRequest, Process, ProcessList, RunCode, RunRequest,
    RunResult, SignalRequest,
};
use dayfly_types::ExecId;
use reqwest::Url;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;

impl Client {
    fn process_address(&self, id: &str, exec: &str, rest: &[&str]) -> Result<Url, ClientError> {
        let exec = ExecId::parse(exec).map_err(|source| ClientError::InvalidName { source })?;
        let mut segments = vec!["processes", exec.as_str()];
        segments.extend(rest);
        self.sandbox_address(id, &segments)
    }

    /// Starts a command and leaves it running. `background` must be set in the request.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn start_process(
        &self,
        id: &str,
        request: &ExecRequest,
    ) -> Result<Process, ClientError> {
        let url = self.sandbox_address(id, &["exec"])?;
        let request = self.http.post(url).json(request);
        decode(&self.call(request, limits::SOCKET_DEADLINE).await?)
    }

    /// Lists the execs of a sandbox, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_processes(&self, id: &str) -> Result<Vec<Process>, ClientError> {
        let url = self.sandbox_address(id, &["processes"])?;
        Ok(self.get_json::<ProcessList>(url).await?.items)
    }

    /// Describes an exec.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn get_process(&self, id: &str, exec: &str) -> Result<Process, ClientError> {
        self.get_json(self.process_address(id, exec, &[])?).await
    }

    /// Reads a part of an exec's output. Gives where it really begins, and the bytes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn read_output(
        &self,
        id: &str,
        exec: &str,
        stream: &str,
        offset: u64,
        limit: u64,
    ) -> Result<(u64, Bytes), ClientError> {
        let mut url = self.process_address(id, exec, &["output"])?;
        url.query_pairs_mut()
            .append_pair("stream", stream)
            .append_pair("offset", &offset.to_string())
            .append_pair("limit", &limit.to_string());
        let response = self.open(self.http.get(url), limits::CALL_DEADLINE).await?;
        let first = response.headers().get("dayfly-offset");
        let first = first.and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = response
            .bytes()
            .await
            .map_err(|error| ClientError::from_http(&error, self.url()))?;
        Ok((first.unwrap_or(offset), bytes))
    }

    /// Sends a signal to the process group of an exec.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn signal_process(
        &self,
        id: &str,
        exec: &str,
        signal: i32,
    ) -> Result<(), ClientError> {
        let url = self.process_address(id, exec, &["signal"])?;
        let body = SignalRequest { signal };
        self.call(self.http.post(url).json(&body), limits::CALL_DEADLINE)
            .await?;
        Ok(())
    }

    /// Ends an exec with everything that it started, and drops its output.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_process(&self, id: &str, exec: &str) -> Result<(), ClientError> {
        self.delete(self.process_address(id, exec, &[])?).await
    }

    /// Makes a context.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_context(
        &self,
        id: &str,
        request: &CreateContext,
    ) -> Result<Context, ClientError> {
        let url = self.sandbox_address(id, &["repl", "sessions"])?;
        let request = self.http.post(url).json(request);
        decode(&self.call(request, limits::SOCKET_DEADLINE).await?)
    }

    /// Lists the contexts of a sandbox.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_contexts(&self, id: &str) -> Result<Vec<Context>, ClientError> {
        let url = self.sandbox_address(id, &["repl", "sessions"])?;
        Ok(self.get_json::<ContextList>(url).await?.items)
    }

    /// Runs code in a context to its end.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `timeout` when it ran past its limit.
    pub async fn run_code(
        &self,
        id: &str,
        context: &str,
        request: &RunCode,
    ) -> Result<RunResult, ClientError> {
        let url = self.context_address(id, context, &["run"])?;
        let request = self.http.post(url).json(request);
        decode(&self.call(request, limits::EXEC_DEADLINE).await?)
    }

    /// Runs code as the sandbox's template declares it.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `timeout` when it ran past its limit.
    pub async fn run(&self, id: &str, code: &str) -> Result<RunResult, ClientError> {
        let url = self.sandbox_address(id, &["run"])?;
        let request = RunRequest {
            code: code.to_owned(),
            ..RunRequest::default()
        };
        let request = self.http.post(url).json(&request);
        decode(&self.call(request, limits::EXEC_DEADLINE).await?)
    }

    /// Interrupts what runs in a context.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn interrupt_context(&self, id: &str, context: &str) -> Result<(), ClientError> {
        let url = self.context_address(id, context, &["interrupt"])?;
        self.call(self.http.post(url), limits::CALL_DEADLINE)
            .await?;
        Ok(())
    }

    /// Starts a context afresh.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn restart_context(&self, id: &str, context: &str) -> Result<(), ClientError> {
        let url = self.context_address(id, context, &["restart"])?;
        self.call(self.http.post(url), limits::SOCKET_DEADLINE)
            .await?;
        Ok(())
    }

    /// Ends a context.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_context(&self, id: &str, context: &str) -> Result<(), ClientError> {
        self.delete(self.context_address(id, context, &[])?).await
    }

    pub(crate) fn context_address(
        &self,
        id: &str,
        context: &str,
        rest: &[&str],
    ) -> Result<Url, ClientError> {
        let context =
            ExecId::parse(context).map_err(|source| ClientError::InvalidName { source })?;
        let mut segments = vec!["repl", "sessions", context.as_str()];
        segments.extend(rest);
        self.sandbox_address(id, &segments)
    }
}
