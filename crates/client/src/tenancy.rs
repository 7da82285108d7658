//! Keys, projects, the audit record and events.

use dayfly_api::{
    AuditList, ChangeLimits, CreateProject, CreateToken, NewToken, Project, ProjectList,
    ProjectSuspension, ProjectUsage, ProjectUsageList, SandboxEvent, SandboxLoadList, SignInOffer,
    SignInRequest, SuspendProject, Token, TokenList,
};

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::event_stream::{EventStream, is_cut, open_again};
use crate::project_choice::ProjectChoice;
use crate::{limits, retry};

/// Which part of the audit record is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditOptions {
    /// Only what was about this.
    pub subject: Option<String>,
    /// Only what was done at this time or later (RFC 3339).
    pub since: Option<String>,
    /// Only what was done at this time or earlier (RFC 3339).
    pub until: Option<String>,
    /// Of the page before.
    pub cursor: Option<String>,
    /// The server's own limit when absent.
    pub limit: Option<u64>,
    pub projects: ProjectChoice,
}

/// How a key is to be ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RevokeOptions {
    /// It is of this project, and an operator ends it. Absent: of the project of the client's key.
    pub project: Option<String>,
    /// Also end the keys and links that it made, and that those made. Also of a key that was revoked
    /// before.
    pub descendants: bool,
}

/// Events as they happen. A lost connection is made again where it was.
#[derive(Debug)]
pub struct EventFollow {
    client: Client,
    projects: ProjectChoice,
    after: Option<String>,
    stream: Option<EventStream>,
}

impl Client {
    /// The OpenID provider that people of this server sign in with. Needs no key.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when nobody can.
    pub async fn sign_in_offer(&self) -> Result<SignInOffer, ClientError> {
        self.get_json(self.address(&["v1", "sign-in"])).await
    }

    /// Exchanges an ID token for a key. Needs no key. Never sent twice: a second key would stay that
    /// nobody knows of.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn sign_in(&self, request: &SignInRequest) -> Result<NewToken, ClientError> {
        let url = self.address(&["v1", "sign-in"]);
        let call = self.http.post(url).json(request);
        decode(&self.call(call, limits::CALL_DEADLINE).await?)
    }

    /// The keys that work now, oldest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tokens(&self, projects: &ProjectChoice) -> Result<Vec<Token>, ClientError> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut url = self.address(&["v1", "me", "tokens"]);
            projects.add_to(&mut url);
            if let Some(cursor) = &cursor {
                url.query_pairs_mut().append_pair("cursor", cursor);
            }
            let list: TokenList = self.get_json(url).await?;
            found.extend(list.items);
            if list.next_cursor.is_none() || list.next_cursor == cursor {
                return Ok(found);
            }
            cursor = list.next_cursor;
        }
    }

    /// Makes a key of this project, or as an operator of another. Never sent twice: a second key
    /// would stay that nobody knows of.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_token(
        &self,
        project: Option<&str>,
        request: &CreateToken,
    ) -> Result<NewToken, ClientError> {
        let url = match project {
            Some(project) => self.project_address(project, &["tokens"])?,
            None => self.address(&["v1", "me", "tokens"]),
        };
        let call = self.http.post(url).json(request);
        decode(&self.call(call, limits::CALL_DEADLINE).await?)
    }

    /// Ends a key, at once.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn revoke_token(&self, prefix: &str) -> Result<(), ClientError> {
        let options = RevokeOptions::default();
        self.revoke_token_with(prefix, &options).await
    }

    /// Ends a key, at once, and what the options say.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn revoke_token_with(
        &self,
        prefix: &str,
        options: &RevokeOptions,
    ) -> Result<(), ClientError> {
        // Escaped as a whole, except that dots would name another object.
        let prefix = prefix.replace('.', "");
        let mut url = self.address(&["v1", "me", "tokens", &prefix]);
        if options.descendants {
            url.query_pairs_mut().append_pair("descendants", "true");
        }
        if let Some(project) = &options.project {
            ProjectChoice::One(project.clone()).add_to(&mut url);
        }
        self.delete(url).await
    }

    /// All projects, for an operator.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn projects(&self) -> Result<Vec<Project>, ClientError> {
        let list: ProjectList = self.get_json(self.address(&["v1", "projects"])).await?;
        Ok(list.items)
    }

    /// Makes a project, for an operator.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `already_exists` when there is one of that name.
    pub async fn create_project(&self, request: &CreateProject) -> Result<Project, ClientError> {
        let call = self.http.post(self.address(&["v1", "projects"]));
        decode(&self.call(call.json(request), limits::CALL_DEADLINE).await?)
    }

    /// Changes what a project may use, for an operator.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_project(
        &self,
        project: &str,
        request: &ChangeLimits,
    ) -> Result<Project, ClientError> {
        let url = self.project_address(project, &[])?;
        let call = || {
            let call = self.http.patch(url.clone()).json(request);
            self.call(call, limits::CALL_DEADLINE)
        };
        decode(&retry::repeat(call).await?)
    }

    /// Suspends a project, for an operator: its keys and links open nothing.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn suspend_project(
        &self,
        project: &str,
        request: &SuspendProject,
    ) -> Result<ProjectSuspension, ClientError> {
        let url = self.project_address(project, &["suspend"])?;
        let call = || {
            let call = self.http.post(url.clone()).json(request);
            self.call(call, limits::PROJECT_DEADLINE)
        };
        decode(&retry::repeat(call).await?)
    }

    /// Lets a suspended project go on, for an operator.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn resume_project(&self, project: &str) -> Result<Project, ClientError> {
        let url = self.project_address(project, &["resume"])?;
        let call = || self.call(self.http.post(url.clone()), limits::CALL_DEADLINE);
        decode(&retry::repeat(call).await?)
    }

    /// Deletes a project that has nothing, for an operator.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `wrong_state` when it has something.
    pub async fn delete_empty_project(&self, project: &str) -> Result<(), ClientError> {
        self.delete(self.project_address(project, &[])?).await
    }

    /// Deletes a project with everything that it has, for an operator.
    ///
    /// # Errors
    /// [`ClientError`]; the server goes on with what it has begun.
    pub async fn delete_project_and_all_of_it(&self, project: &str) -> Result<(), ClientError> {
        let mut url = self.project_address(project, &[])?;
        url.query_pairs_mut().append_pair("force", "true");
        let call = || {
            let call = self.http.delete(url.clone());
            self.call(call, limits::PROJECT_DEADLINE)
        };
        retry::repeat(call).await.map(drop)
    }

    /// What this project uses, and may use.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn usage(&self) -> Result<ProjectUsage, ClientError> {
        self.get_json(self.address(&["v1", "usage"])).await
    }

    /// What another project uses, and may use, for an operator.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn usage_of(&self, project: &str) -> Result<ProjectUsage, ClientError> {
        let mut url = self.address(&["v1", "usage"]);
        ProjectChoice::One(project.to_owned()).add_to(&mut url);
        self.get_json(url).await
    }

    /// What each project uses, and may use, for an operator.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn usage_of_all(&self) -> Result<Vec<ProjectUsage>, ClientError> {
        let url = self.address(&["v1", "usage", "projects"]);
        let list: ProjectUsageList = self.get_json(url).await?;
        Ok(list.items)
    }

    /// What each sandbox that runs costs the host.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn sandbox_loads(
        &self,
        projects: &ProjectChoice,
    ) -> Result<SandboxLoadList, ClientError> {
        let mut url = self.address(&["v1", "usage", "sandboxes"]);
        projects.add_to(&mut url);
        self.get_json(url).await
    }

    /// Who did what, newest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn audit(&self, options: &AuditOptions) -> Result<AuditList, ClientError> {
        let mut url = self.address(&["v1", "audit"]);
        let limit = options.limit.map(|limit| limit.to_string());
        for (name, value) in [
            ("subject", &options.subject),
            ("since", &options.since),
            ("until", &options.until),
            ("cursor", &options.cursor),
            ("limit", &limit),
        ] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        options.projects.add_to(&mut url);
        self.get_json(url).await
    }

    /// What happens to sandboxes, from behind `after` on, or from now on.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_events(
        &self,
        projects: ProjectChoice,
        after: Option<String>,
    ) -> Result<EventFollow, ClientError> {
        let mut follow = EventFollow {
            client: self.clone(),
            projects,
            after,
            stream: None,
        };
        follow.stream = Some(follow.open().await?);
        Ok(follow)
    }
}

impl EventFollow {
    /// The next event.
    ///
    /// # Errors
    /// [`ClientError`] when the server is away for longer than a minute.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<SandboxEvent, ClientError> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.stream = Some(open_again(async || self.open().await).await?);
                continue;
            };
            match stream.next().await {
                Ok(event) if event.name == "sandbox" => {
                    let event: SandboxEvent = decode(event.data.as_bytes())?;
                    self.after = Some(event.cursor.clone());
                    return Ok(event);
                }
                // A newer server may say more.
                Ok(_) => {}
                Err(error) if is_cut(&error) => self.stream = None,
                Err(error) => return Err(error),
            }
        }
    }

    async fn open(&self) -> Result<EventStream, ClientError> {
        let mut url = self.client.address(&["v1", "events"]);
        self.projects.add_to(&mut url);
        if let Some(after) = &self.after {
            url.query_pairs_mut().append_pair("after", after);
        }
        let request = self.client.http.get(url);
        let response = self.client.open(request, limits::CALL_DEADLINE).await?;
        Ok(EventStream::new(response, self.client.url()))
    }
}
