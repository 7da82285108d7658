"""Disposable microVM sandboxes for AI agents.

from dayfly import Sandbox

with Sandbox(ttl_seconds=600) as sandbox:
    print(sandbox.exec("uname -a").stdout)
"""

from ._async_client import AsyncClient
from ._async_context import AsyncCodeContext
from ._async_filesystem import AsyncFilesystem, AsyncWatch
from ._async_process import AsyncAttached, AsyncProcess
from ._async_pty import AsyncPty
from ._async_sandbox import AsyncSandbox, async_me, async_templates
from ._async_sandbox_pool import AsyncAcquired, AsyncSandboxPool
from ._async_snapshot import AsyncSnapshot
from ._async_template import AsyncTemplate
from ._async_tools import AsyncTools
from ._async_volume import AsyncVolume
from ._children import AsyncChildren, Children
from ._exploring import Attempt, Exploration
from ._options import (
    Language,
    LogWhenFull,
    NetworkMode,
    OnTimeout,
    PromiseClass,
    RunMode,
    Status,
    StreamName,
)
from ._retry import Progress
from ._version import VERSION as __version__
from .builds import BuildEvent, TemplateBuild, TemplateVersion
from .client import Client
from .context import CodeContext
from .errors import (
    AlreadyExists,
    AnswerLost,
    AnswerTimeout,
    ApiError,
    BuildFailed,
    CertificateRefused,
    CodeFailed,
    CommandFailed,
    Conflict,
    DayflyError,
    DiskFull,
    ExecInterrupted,
    Forbidden,
    ForkFailed,
    GuestUnavailable,
    IdempotencyConflict,
    InvalidRequest,
    InvalidSettings,
    NoCapacity,
    NodeUnavailable,
    NotFound,
    NothingListens,
    ProtocolError,
    QuotaExceeded,
    RateLimited,
    SandboxTimeout,
    ServerError,
    ServerUnreachable,
    SnapshotUnusable,
    StoreUnavailable,
    TemplateBaking,
    TemplateFailed,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
    Unsupported,
    VolumeBusy,
    WrongState,
)
from .execution import Execution, ExecutionError, Result
from .filesystem import Filesystem, Watch
from .models import (
    ChangedFile,
    ContextInfo,
    ExecResult,
    FileChange,
    FileEntry,
    FileLink,
    Lifecycle,
    Me,
    Output,
    OutputChunk,
    Port,
    PortLink,
    ProcessInfo,
    Promoted,
    SandboxInfo,
    SnapshotInfo,
    TemplateInfo,
    VolumeInfo,
    VolumeMount,
)
from .network import NetworkLog, NetworkPolicy, NetworkRecord, NetworkRule, NetworkSuggestion
from .process import Attached, Process
from .pty import Pty
from .sandbox import Sandbox, me, templates
from .sandbox_pool import Acquired, ClosedPool, PoolFull, PoolStatus, SandboxPool
from .snapshot import Snapshot
from .template import Template
from .tools import ToolImage, ToolResult, Tools
from .volume import Volume

__all__ = [
    "Acquired",
    "AlreadyExists",
    "AnswerLost",
    "AnswerTimeout",
    "ApiError",
    "AsyncAcquired",
    "AsyncAttached",
    "AsyncChildren",
    "AsyncClient",
    "AsyncCodeContext",
    "AsyncFilesystem",
    "AsyncProcess",
    "AsyncPty",
    "AsyncSandbox",
    "AsyncSandboxPool",
    "AsyncSnapshot",
    "AsyncTemplate",
    "AsyncTools",
    "AsyncVolume",
    "AsyncWatch",
    "Attached",
    "Attempt",
    "BuildEvent",
    "BuildFailed",
    "CertificateRefused",
    "ChangedFile",
    "Children",
    "Client",
    "ClosedPool",
    "CodeContext",
    "CodeFailed",
    "CommandFailed",
    "Conflict",
    "ContextInfo",
    "DayflyError",
    "DiskFull",
    "ExecInterrupted",
    "ExecResult",
    "Execution",
    "ExecutionError",
    "Exploration",
    "FileChange",
    "FileEntry",
    "FileLink",
    "Filesystem",
    "Forbidden",
    "ForkFailed",
    "GuestUnavailable",
    "IdempotencyConflict",
    "InvalidRequest",
    "InvalidSettings",
    "Language",
    "Lifecycle",
    "LogWhenFull",
    "Me",
    "NetworkLog",
    "NetworkMode",
    "NetworkPolicy",
    "NetworkRecord",
    "NetworkRule",
    "NetworkSuggestion",
    "NoCapacity",
    "NodeUnavailable",
    "NotFound",
    "NothingListens",
    "OnTimeout",
    "Output",
    "OutputChunk",
    "PoolFull",
    "PoolStatus",
    "Port",
    "PortLink",
    "Process",
    "ProcessInfo",
    "Progress",
    "PromiseClass",
    "Promoted",
    "ProtocolError",
    "Pty",
    "QuotaExceeded",
    "RateLimited",
    "Result",
    "RunMode",
    "Sandbox",
    "SandboxInfo",
    "SandboxPool",
    "SandboxTimeout",
    "ServerError",
    "ServerUnreachable",
    "Snapshot",
    "SnapshotInfo",
    "SnapshotUnusable",
    "Status",
    "StoreUnavailable",
    "StreamName",
    "Template",
    "TemplateBaking",
    "TemplateBuild",
    "TemplateFailed",
    "TemplateInfo",
    "TemplateVersion",
    "TooLarge",
    "TooMany",
    "ToolImage",
    "ToolResult",
    "Tools",
    "Unauthorized",
    "Unavailable",
    "Unsupported",
    "Volume",
    "VolumeBusy",
    "VolumeInfo",
    "VolumeMount",
    "Watch",
    "WrongState",
    "__version__",
    "async_me",
    "async_templates",
    "me",
    "templates",
]
