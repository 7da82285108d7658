/** What goes wrong with agents. */

import { DayflyError } from "../errors.js";

/** A model could not be asked. `cause` is what its client threw. */
export class ModelFailed extends DayflyError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "model_failed", cause });
  }
}

/** The sandbox is gone; `cause` says how that showed. */
export class SandboxLost extends DayflyError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "sandbox_lost", cause });
  }
}

/** There is no moment that far back. */
export class UndoRefused extends DayflyError {
  constructor(message: string) {
    super(message, { code: "undo_refused" });
  }
}

/** What was to be read is not a transcript, or one of another version. */
export class TranscriptRefused extends DayflyError {
  constructor(message: string) {
    super(message, { code: "transcript_refused" });
  }
}
