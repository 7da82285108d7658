/** Ends a tool that has no timeout of its own. */

import { Deadline } from "../deadline.js";
import { CALL_SECONDS_MAX, failed, secondsOf, type ToolResult, type ToolTarget } from "./result.js";

type Tool<Given> = (target: ToolTarget, given: Given) => Promise<ToolResult>;

/** The same tool, which takes no longer than a call may take. Past that a result says so, with a hint. */
export function inTime<Given>(tool: Tool<Given>, hint?: string): Tool<Given> {
  return async (target, given) => {
    const seconds = secondsOf(target, CALL_SECONDS_MAX);
    const deadline = new Deadline(seconds * 1000, target.signal);
    const { signal } = deadline;
    try {
      return await tool({ ...target, signal }, given);
    } catch (error) {
      if (!signal.aborted) throw error;
      if (deadline.isCallers) throw deadline.failure;
      return failed(`the call took longer than ${Math.round(seconds * 10) / 10} s`, hint);
    } finally {
      deadline.end();
    }
  };
}
