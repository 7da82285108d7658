/**
 * The loop: a model proposes, the sandbox carries out, the model sees what came of it. What tools give
 * goes back as results of calls, in the form that a provider has for them, and nowhere else.
 */

import { Deadline } from "../deadline.js";
import { DayflyError } from "../errors.js";
import { AGENT_TOOLS } from "../generated/tools.js";
import { ArgumentsRefused, fitted, parsed } from "../tools/arguments.js";
import { callToolAloud, type Selection } from "../tools/calls.js";
import { failed, failedBy, given, type ToolResult, type ToolTarget } from "../tools/result.js";
import type { Budget, Meter, StopReason } from "./budget.js";
import { type Checkpoints, undoneNote } from "./checkpoints.js";
import { type CallResult, failedCall, type Message, type ToolCall, type Turn, userText } from "./conversation.js";
import { ModelFailed, SandboxLost, UndoRefused } from "./errors.js";
import type { AgentEvent, EventListener } from "./events.js";
import { askModel, type Model } from "./model.js";
import { INTERRUPTED, type Transcript } from "./transcript.js";

const UNDO_LATER = "a call is being carried out; undo when it has ended, as in a listener of call_ended";
const UNDO = AGENT_TOOLS.filter(({ name }) => name === "undo");
/** A sandbox in one of these states does nothing any more. */
const OVER = ["failed", "deleting", "deleted"];
/** What a timer may ring too early by: a budget must be over when it has rung. */
const TIMER_SLACK_MS = 5;
/** As good as for ever. */
const MODEL_WAIT_MS = 24 * 3600 * 1000;

/** What `beforeExecution` gives to refuse a call; the model gets the reason. */
export interface Refusal {
  reason: string;
}

/** Gets each call before it is carried out, and gives nothing or a `Refusal`. */
export type BeforeExecution = (call: ToolCall) => Refusal | undefined | void | Promise<Refusal | undefined | void>;

/** How an agent goes about it. @internal */
export interface Rules {
  readonly model: Model;
  readonly selection: Selection;
  readonly budget: Budget;
  readonly system: string | undefined;
  readonly stepTimeoutSeconds: number | undefined;
  readonly beforeExecution: BeforeExecution | undefined;
  readonly isCheckpointed: boolean;
  readonly hasUndoTool: boolean;
}

/** What a run has of its own. @internal */
export interface RunParts {
  readonly target: ToolTarget;
  readonly transcript: Transcript;
  readonly checkpoints: Checkpoints;
  readonly meter: Meter;
  readonly onEvent: EventListener | undefined;
}

/** One run of an agent in one sandbox. @internal */
export class Run {
  readonly transcript: Transcript;
  readonly checkpoints: Checkpoints;
  readonly target: ToolTarget;
  error: Error | undefined;
  readonly #rules: Rules;
  readonly #meter: Meter;
  readonly #onEvent: EventListener | undefined;
  /** What the caller undid while calls had no results yet; told behind them. */
  readonly #notes: Message[] = [];
  /** From the beginning of a call to its result: to go back would be to take its own checkpoint away. */
  #isUnderWay = false;
  /** What the caller undoes. Nobody may have waited for it, but the next call does. */
  #undoing: Promise<unknown> = Promise.resolve();
  /** An error of the caller's own function within a turn: it is not one of the model. */
  #ofCaller: { error: unknown } | undefined;

  constructor(rules: Rules, { target, transcript, checkpoints, meter, onEvent }: RunParts) {
    this.#rules = rules;
    this.target = target;
    this.transcript = transcript;
    this.checkpoints = checkpoints;
    this.#meter = meter;
    this.#onEvent = onEvent;
  }

  /** Goes on until the model is done, a budget is used up, or something is lost. */
  async go(): Promise<StopReason> {
    try {
      return await this.#loop();
    } finally {
      if (this.#notes.length > 0) this.#closeWithNotes();
    }
  }

  async #loop(): Promise<StopReason> {
    for (;;) {
      const over = this.#meter.nextTurn();
      if (over !== undefined) return over;
      let turn: Turn;
      try {
        turn = await this.#turn();
      } catch (error) {
        this.target.signal?.throwIfAborted();
        if (!(error instanceof ModelFailed)) throw error;
        this.error = error;
        return this.#meter.nextCall() === "seconds" ? "seconds" : "model_error";
      }
      const end = endOf(turn);
      if (end !== undefined) {
        this.#close(turn, end);
        return end;
      }
      await this.#carryOut(turn);
      if (this.error !== undefined) {
        await this.#lastWord();
        return "sandbox_lost";
      }
    }
  }

  /** Undoes calls for the caller, and has the model know. */
  async undo(steps: number): Promise<number> {
    if (this.#isUnderWay) throw new UndoRefused(UNDO_LATER);
    const undone = this.#undoing.then(() => this.checkpoints.undo(this.target.sandbox, steps));
    this.#undoing = undone.catch(() => undefined);
    const names = await undone;
    const { messages } = this.transcript;
    const last = messages.at(-1);
    // Between calls and their results providers want nothing else.
    const isBetween = last?.kind === "turn" && last.calls.length > 0;
    (isBetween ? this.#notes : messages).push(userText(undoneNote(names)));
    return names.length;
  }

  /** Of a run that ended before its calls had results. */
  #closeWithNotes(): void {
    this.transcript.closeCalls();
    this.transcript.messages.push(...this.#notes.splice(0));
  }

  async #tell(event: AgentEvent): Promise<void> {
    await this.#onEvent?.(event);
  }

  async #turn(): Promise<Turn> {
    const step = this.#meter.step + 1;
    await this.#tell({ kind: "turn_began", step });
    const left = this.#meter.secondsLeft();
    const limitMs = left === undefined ? MODEL_WAIT_MS : Math.max(0, left * 1000) + TIMER_SLACK_MS;
    const deadline = new Deadline(limitMs, this.target.signal);
    try {
      const turn = await askModel(this.#rules.model, {
        system: this.#rules.system,
        messages: this.transcript.messages,
        selection: this.#rules.selection,
        extra: this.#rules.hasUndoTool ? UNDO : [],
        signal: deadline.signal,
        onText: (text) => this.#tellText(step, text),
      });
      if (!this.#meter.canCount(turn.usage)) {
        throw new ModelFailed("the model reports no usage, so the budget cannot be kept");
      }
      this.transcript.messages.push(turn);
      this.#meter.add(turn.usage);
      await this.#tell({ kind: "turn_ended", step, turn });
      return turn;
    } catch (error) {
      throw this.#ofCaller === undefined ? error : this.#ofCaller.error;
    } finally {
      deadline.end();
    }
  }

  /** Tells of text within a turn. */
  async #tellText(step: number, text: string): Promise<void> {
    try {
      await this.#tell({ kind: "text_delta", step, text });
    } catch (error) {
      this.#ofCaller = { error };
      throw error;
    }
  }

  /** Calls of a turn that is the last have a result all the same: providers want one. */
  #close({ calls }: Turn, reason: StopReason): void {
    if (calls.length === 0) return;
    const text = `error: this call was not carried out: ${reason.replaceAll("_", " ")}`;
    this.transcript.messages.push({ kind: "results", results: calls.map((call) => failedCall(call, text)) });
  }

  /** All calls of a turn, one after the other: they share files and interpreters. */
  async #carryOut({ calls }: Turn): Promise<void> {
    const results: CallResult[] = [];
    try {
      for (const call of calls) {
        const { text, isError, images } = await this.#one(call);
        results.push({ callId: call.id, name: call.name, text, isError, images });
      }
    } finally {
      // Also of a run that is cancelled: what is stored of it can be resumed.
      results.push(...calls.slice(results.length).map((call) => failedCall(call, INTERRUPTED)));
      this.transcript.messages.push({ kind: "results", results }, ...this.#notes.splice(0));
    }
  }

  /** Has the model say what it makes of the loss. What it calls then is not carried out. */
  async #lastWord(): Promise<void> {
    if (this.#meter.nextTurn() !== undefined) return;
    try {
      this.#close(await this.#turn(), "sandbox_lost");
    } catch (error) {
      this.target.signal?.throwIfAborted();
      // The loss is the better news.
      if (!(error instanceof ModelFailed)) throw error;
    }
  }

  /** What comes of a call, whatever that is. */
  async #one(call: ToolCall): Promise<ToolResult> {
    if (this.error === undefined) {
      try {
        return await this.#begin(call);
      } catch (error) {
        if (!(error instanceof SandboxLost)) throw error;
        this.error = error;
      }
    }
    const result = failed(`the sandbox is gone: ${this.error.message}`, "nothing more can be called");
    await this.#tell({ kind: "call_ended", step: this.#meter.step, call, result });
    return result;
  }

  async #begin(call: ToolCall): Promise<ToolResult> {
    const { step } = this.#meter;
    this.target.signal?.throwIfAborted();
    const over = this.#meter.nextCall();
    const result =
      over === undefined
        ? ((await this.#refusal(call)) ?? (await this.#execute(call)))
        : failed(`this call was not carried out: the budget of ${over} is used up`);
    await this.#tell({ kind: "call_ended", step, call, result });
    return result;
  }

  async #refusal(call: ToolCall): Promise<ToolResult | undefined> {
    const refusal: unknown = (await this.#rules.beforeExecution?.(call)) ?? undefined;
    if (refusal === undefined) return undefined;
    if (typeof refusal === "object" && "reason" in (refusal as object)) {
      const { reason } = refusal as Refusal;
      return failed(`this call was refused before it was carried out: ${reason}`);
    }
    throw new TypeError("beforeExecution gives nothing, or a reason to refuse: { reason }");
  }

  async #execute(call: ToolCall): Promise<ToolResult> {
    await this.#undoing;
    this.#isUnderWay = true;
    try {
      return await this.#executeAlone(call);
    } finally {
      this.#isUnderWay = false;
    }
  }

  async #executeAlone(call: ToolCall): Promise<ToolResult> {
    const { target } = this;
    await this.#tell({ kind: "call_began", step: this.#meter.step, call });
    if (call.name === "undo" && this.#rules.hasUndoTool) return await this.#undoForModel(call.arguments);
    try {
      await this.#keepMoment(call);
    } catch (error) {
      if (!(error instanceof DayflyError)) throw error;
      await this.#look(error);
      // Without it the call could not be undone, as the model and the caller expect.
      return failed(`no checkpoint could be taken, so nothing was done: ${error.message}`);
    }
    const limits = [this.#rules.stepTimeoutSeconds, this.#meter.secondsLeft()].filter((one) => one !== undefined);
    target.secondsMax = limits.length === 0 ? undefined : Math.min(...limits);
    try {
      return await callToolAloud(target, this.#rules.selection, call.name, call.arguments);
    } catch (error) {
      target.signal?.throwIfAborted();
      if (!(error instanceof DayflyError)) throw error;
      await this.#look(error);
      return failedBy(error);
    }
  }

  async #keepMoment(call: ToolCall): Promise<void> {
    const { selection, isCheckpointed } = this.#rules;
    const { step } = this.#meter;
    if (!isCheckpointed || !selection.changes(call.name, call.arguments)) return;
    const snapshotId = await this.checkpoints.take(this.target.sandbox, call.name);
    await this.#tell({ kind: "checkpoint_taken", step, call, snapshotId });
    const dropped = await this.checkpoints.dropOldest();
    if (dropped !== undefined) await this.#tell({ kind: "checkpoint_dropped", step, snapshotId: dropped });
  }

  async #undoForModel(wish: ToolCall["arguments"]): Promise<ToolResult> {
    let names: string[];
    try {
      const { steps } = fitted(UNDO[0]?.input ?? { properties: {}, required: [] }, parsed(wish)) as { steps: number };
      names = await this.checkpoints.undo(this.target.sandbox, steps);
    } catch (error) {
      if (error instanceof ArgumentsRefused || error instanceof UndoRefused) return failed(error.message);
      if (!(error instanceof DayflyError)) throw error;
      await this.#look(error);
      return failedBy(error);
    }
    await this.#tell({ kind: "undone", step: this.#meter.step, calls: names.length });
    const text = `undone, the earliest first: ${names.join(", ")}; the sandbox is as it was before`;
    return given(text, { undone: names });
  }

  /** Whether the sandbox is still there, after something failed in it. */
  async #look(error: DayflyError): Promise<void> {
    let lost: string | undefined;
    try {
      const { status, reason } = await this.target.sandbox.info();
      if (OVER.includes(status)) lost = reason ?? `the sandbox is ${status}`;
    } catch (gone) {
      if (!(gone instanceof DayflyError)) throw gone;
      lost = gone.message;
    }
    if (lost !== undefined) throw new SandboxLost(lost, error);
  }
}

/** Why a turn is the last, if it is. */
function endOf(turn: Turn): StopReason | undefined {
  if (turn.isRefused) return "model_refused";
  if (turn.isCut) return "output_limit";
  return turn.calls.length === 0 ? "done" : undefined;
}
