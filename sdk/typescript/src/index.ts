/// <reference lib="esnext.disposable" preserve="true" />

/** Disposable microVM sandboxes. Begin with {@link Sandbox}. */

export { Attachment, type OutputChunk } from "./attachment.js";
export type { BuildListener } from "./build-follow.js";
export { BuildEvent, type BuildStatus, type TemplateBuild, type TemplateLike, type TemplateVersion } from "./builds.js";
export type { RunOptions } from "./code.js";
export type { CodeListeners } from "./code-stream.js";
export { Client } from "./client.js";
export type { ClientOptions, ConnectionOptions, Logger } from "./config.js";
export { CodeContext } from "./context.js";
export type { CreateOptions, LifecycleOptions, NetworkOptions } from "./create.js";
export type { WaitProgress, WaitReason } from "./create-wait.js";
export * from "./errors.js";
export type { BackgroundOptions, Command, CommandOptions, ExecOptions, OutputListener } from "./exec-options.js";
export { ExecResult, type Omission } from "./exec-result.js";
export { Execution, type ExecutionError, Result } from "./execution.js";
export type { Attempt, Candidate, Exploration, ExploreOptions } from "./explore.js";
export type { Listeners } from "./exec-follow.js";
export * from "./failures.js";
export type { FileData } from "./content.js";
export { type FileListOptions, Files, type LookOptions, type ReadOptions, type UserOption, type WriteOptions } from "./files.js";
export type { Children, ForkManyOptions, ForkOptions, ForkTree } from "./forks.js";
export { Listing } from "./listing.js";
export type { ModelTextOptions } from "./model-text.js";
export { Network, type NetworkPolicy, type NetworkSuggestion } from "./network.js";
export { type PoolStatus, SandboxPool, type SandboxPoolOptions } from "./pool.js";
export { Process } from "./process.js";
export type { OutputName, OutputPart } from "./process-output.js";
export { Pty, type PtyOptions, type TerminalSize } from "./pty.js";
export { type EnvironmentOptions, type RunCodeOptions, type RunMode, Sandbox, type SandboxFilter } from "./sandbox.js";
export { me, templates } from "./server.js";
export { Snapshot } from "./snapshot.js";
export type {
  EditFileArguments,
  ExposePortArguments,
  ForkArguments,
  ListFilesArguments,
  ReadFileArguments,
  RollbackArguments,
  RunCodeArguments,
  RunShellArguments,
  SandboxToolName,
  SearchFilesArguments,
  SnapshotArguments,
  WriteFileArguments,
} from "./generated/tools.js";
export { type BuildOptions, type ContextOptions, type CopyOptions, type StartOptions, Template } from "./template.js";
export type { AiSdkTool } from "./tools/ai-sdk.js";
export type { ToolName } from "./tools/calls.js";
export type { AnthropicTool, McpTool, OpenAIResponsesTool, OpenAITool } from "./tools/definition.js";
export type { NativeToolName } from "./tools/native.js";
export type { ToolImage, ToolResult } from "./tools/result.js";
export { type ToolCallOptions, Tools } from "./tools/tools.js";
export type { LocalPath } from "./transfer.js";
export { VERSION } from "./version.js";
export { Volume, type VolumeSize } from "./volume.js";
export { type FileChange, FileWatch } from "./watch.js";
export type * from "./wire.js";
