//! The node's side of every stream, and the way of every call to its answer.

use std::sync::Arc;

use async_trait::async_trait;
use dayfly_node_api::{
    AttachExec, ContextLines, EnsureExec, ExecEvents, FileBytes, FileChanges, FileRead, FileWrite,
    GuestPath, NodeApi, NodeCall, NodeError, NodeReply, PortStream, StdinWrite, Watch, WatchFiles,
};
use dayfly_types::SandboxId;
use dayfly_types::exec::ExecInfo;
use dayfly_types::file::OpenedFile;

use crate::followed::Place;
use crate::node::Node;
use crate::{calls, execs, files, ingress};

#[async_trait]
impl NodeApi for Node {
    async fn call(&self, call: NodeCall) -> Result<NodeReply, NodeError> {
        dayfly_node_api::answer(self, call).await
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        Ok(calls::watch(Arc::clone(&self.parts)))
    }

    async fn exec(&self, id: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        let (agent, call) = self.agent(id).await?;
        let place = Place::of(self.find(id)?);
        execs::start(&agent, place, request, call).await
    }

    async fn attach_exec(
        &self,
        id: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        let (agent, call) = self.agent(id).await?;
        let place = Place::of(self.find(id)?);
        execs::attach(&agent, place, request, call).await
    }

    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        execs::write_stdin(&agent, request, content).await
    }

    async fn context(&self, id: &SandboxId, line: String) -> Result<ContextLines, NodeError> {
        let (agent, call) = self.agent(id).await?;
        execs::context(&agent, &line, call).await
    }

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        let (agent, call) = self.agent(id).await?;
        files::read(&agent, request, call).await
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        files::write(&agent, request, content).await
    }

    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        let (agent, call) = self.agent(id).await?;
        files::watch(&agent, request, call).await
    }

    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError> {
        let (agent, call) = self.agent(id).await?;
        files::pack(&agent, request, call).await
    }

    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        let (agent, _call) = self.agent(id).await?;
        files::unpack(&agent, request, content).await
    }

    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        ingress::connect(&self.find(id)?, port).await
    }
}
