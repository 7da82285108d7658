// Agents at a fake daemon, with a model that follows a script.

import type { AgentOptions, CallResult, Message, ModelFunction, ToolCall, TurnWish } from "dayfly/agents";
import { Agent } from "dayfly/agents";
import { FakeDaemon } from "./fake-daemon.js";

export function shell(command = "ls", id = "c1"): ToolCall {
  return { id, name: "run_shell", arguments: { command } };
}

export function calling(...calls: ToolCall[]): TurnWish {
  return { text: "let me see", calls, usage: { inputTokens: 10 } };
}

export const DONE: TurnWish = { text: "done", usage: { inputTokens: 5, outputTokens: 5 } };

/** A model that says its turns one after the other, the last again and again. */
export class Script {
  readonly seen: (readonly Message[])[] = [];
  toolNames: string[] = [];
  readonly #turns: readonly (TurnWish | Error)[];

  constructor(...turns: (TurnWish | Error)[]) {
    this.#turns = turns;
  }

  readonly say: ModelFunction = (messages, tools) => {
    this.seen.push(messages);
    this.toolNames = tools.map(({ name }) => name);
    const turn = this.#turns[Math.min(this.seen.length, this.#turns.length) - 1] ?? {};
    if (turn instanceof Error) throw turn;
    return turn;
  };

  /** The results that a request ended with. */
  results(request = this.seen.length - 1): readonly CallResult[] {
    const last = this.seen[request]?.at(-1);
    if (last?.kind !== "results") throw new Error(`the request ended with ${last?.kind}`);
    return last.results;
  }
}

export interface World {
  daemon: FakeDaemon;
  make: (model: Script | ModelFunction, options?: AgentOptions) => Agent;
}

export async function world(): Promise<World> {
  const daemon = await FakeDaemon.start();
  const make: World["make"] = (model, options = {}) => {
    const given = options.sandbox === undefined ? { ...daemon.options, ...options } : options;
    return new Agent(model instanceof Script ? model.say : model, given);
  };
  return { daemon, make };
}

export const kinds = (messages: readonly Message[]): string[] => messages.map(({ kind }) => kind);
