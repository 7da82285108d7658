"""An agent in a sandbox: a loop around a model, with budgets, undo and a search.

from dayfly.agents import Agent, AnthropicModel, Budget
"""

from ._anthropic import AnthropicModel
from ._async_agent import AsyncAgent
from ._best_of import BestOf, Judge, Trial
from ._budget import Budget, Spent, StopReason
from ._checkpoints import UndoRefused
from ._conversation import CallResult, Message, Results, ToolCall, Turn, Usage, UserText
from ._events import (
    AgentResult,
    CallBegan,
    CallEnded,
    CheckpointDropped,
    CheckpointTaken,
    Event,
    RunEnded,
    TextDelta,
    TurnBegan,
    TurnEnded,
    Undone,
)
from ._loop import Refusal, SandboxLost
from ._models import ModelFailed, ModelFunction
from ._openai_chat import OpenAIChatModel
from ._openai_responses import OpenAIResponsesModel
from ._stored import TranscriptRefused
from ._transcript import Transcript
from .agent import Agent

__all__ = [
    "Agent",
    "AgentResult",
    "AnthropicModel",
    "AsyncAgent",
    "BestOf",
    "Budget",
    "CallBegan",
    "CallEnded",
    "CallResult",
    "CheckpointDropped",
    "CheckpointTaken",
    "Event",
    "Judge",
    "Message",
    "ModelFailed",
    "ModelFunction",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "Refusal",
    "Results",
    "RunEnded",
    "SandboxLost",
    "Spent",
    "StopReason",
    "TextDelta",
    "ToolCall",
    "Transcript",
    "TranscriptRefused",
    "Trial",
    "Turn",
    "TurnBegan",
    "TurnEnded",
    "UndoRefused",
    "Undone",
    "Usage",
    "UserText",
]
