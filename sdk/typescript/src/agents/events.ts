/** What a run tells while it goes on, and what it gives at its end. */

import type { ToolResult } from "../tools/result.js";
import type { Spent, StopReason } from "./budget.js";
import type { ToolCall, Turn } from "./conversation.js";
import type { Transcript } from "./transcript.js";

/** How a run ended. */
export interface AgentResult {
  /** The last that the model said. */
  text: string;
  reason: StopReason;
  /** Whether the model came to its end. */
  ok: boolean;
  spent: Spent;
  transcript: Transcript;
  sandboxId: string;
  /** Why the model, or the sandbox, failed. */
  error: Error | undefined;
  /** The ids of the snapshots that were kept, the latest last. */
  checkpoints: string[];
}

/** What happens in a run. `step` counts the turns of the model from 1. */
export type AgentEvent =
  /** The model is asked. */
  | { kind: "turn_began"; step: number }
  /** A piece of the model's text as it comes, from a model that streams. */
  | { kind: "text_delta"; step: number; text: string }
  /** The model has said what it wants. */
  | { kind: "turn_ended"; step: number; turn: Turn }
  /** A tool call is carried out. */
  | { kind: "call_began"; step: number; call: ToolCall }
  /** What came of a tool call, also of one that was refused or not begun. */
  | { kind: "call_ended"; step: number; call: ToolCall; result: ToolResult }
  /** A snapshot was taken before a call. */
  | { kind: "checkpoint_taken"; step: number; call: ToolCall; snapshotId: string }
  /** The oldest checkpoint was deleted: there are as many as may be. What is before cannot be undone any more. */
  | { kind: "checkpoint_dropped"; step: number; snapshotId: string }
  /** So many tool calls were undone. */
  | { kind: "undone"; step: number; calls: number }
  /** The last event. */
  | { kind: "run_ended"; result: AgentResult };

/** Hears events. A promise is waited for before the run goes on. */
export type EventListener = (event: AgentEvent) => unknown;
