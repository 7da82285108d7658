/// <reference lib="esnext.disposable" preserve="true" />

/** An agent in a sandbox: a loop around a model, with budgets, undo and a search. Begin with {@link Agent}. */

export { Agent, type AgentOptions, type RunAgentOptions } from "./agent.js";
export { type AnthropicClient, AnthropicModel } from "./anthropic.js";
export type { BestOf, BestOfOptions, Trial } from "./best-of.js";
export type { Budget, BudgetName, Spent, StopReason } from "./budget.js";
export type { CallResult, Message, Results, ToolCall, Turn, TurnWish, Usage, UserText } from "./conversation.js";
export * from "./errors.js";
export type { AgentEvent, AgentResult, EventListener } from "./events.js";
export type { BeforeExecution, Refusal } from "./loop.js";
export { ClientModel, type ModelFunction, type ModelOptions } from "./model.js";
export { type OpenAIChatClient, OpenAIChatModel } from "./openai-chat.js";
export { type OpenAIResponsesClient, OpenAIResponsesModel } from "./openai-responses.js";
export type { PlaceOptions, Scope } from "./place.js";
export { Transcript } from "./transcript.js";
