/** Builds and versions of templates, as plain values. */

import { toCamel } from "./names.js";
import type { Wire } from "./wire.js";

/** How far a build is. */
export type BuildStatus = "queued" | "running" | "done" | "failed";

/** A build as the server describes it. @internal */
export interface WireBuild {
  id: string;
  name: string;
  tag: string;
  status: BuildStatus;
  error?: string | null;
  started_at?: string | null;
  ended_at?: string | null;
  size_mb: number;
  bytes: number;
  version?: string | null;
  steps: number;
  cached: number;
}

/** A step whose command failed. @internal */
export interface WireFailedStep {
  text: string;
  exit_code: number;
  tail: string[];
  sandbox: string;
}

/**
 * A build of a template, as it was when the server was asked. `Sandbox.create({ template: build })` makes a sandbox
 * of what it built. `cached` of its `steps` were done by earlier builds.
 */
export interface TemplateBuild {
  readonly id: string;
  readonly name: string;
  readonly tag: string;
  readonly status: BuildStatus;
  /** What names it at a create: the version once there is one, whatever the tag means. */
  readonly reference: string;
  readonly version: string | undefined;
  readonly steps: number;
  readonly cached: number;
  readonly error: string | undefined;
  readonly sizeMb: number;
  readonly bytes: number;
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
}

/** @internal */
export function templateBuild(wire: WireBuild): TemplateBuild {
  const { id, name, tag, status, steps, cached, size_mb: sizeMb, bytes } = wire;
  return {
    ...{ id, name, tag, status, steps, cached, sizeMb, bytes },
    reference: wire.version ? `${name}@${wire.version}` : `${name}:${tag}`,
    version: wire.version ?? undefined,
    error: wire.error ?? undefined,
    startedAt: wire.started_at ?? undefined,
    endedAt: wire.ended_at ?? undefined,
  };
}

type VersionFields = ReturnType<typeof toCamel<Wire["TemplateVersion"]>>;

/**
 * A version of a template of the project, which never changes. `tags` are those that mean it; `state` is that of
 * its bake, `usable` whether sandboxes can be made from it.
 */
export interface TemplateVersion extends Omit<VersionFields, "provenance"> {
  /** What it was built from, and by whom. */
  provenance: Record<string, unknown>;
  /** What names it at a create. */
  reference: string;
}

/** @internal */
export function templateVersion(wire: Wire["TemplateVersion"]): TemplateVersion {
  return { ...toCamel(wire), provenance: wire.provenance, reference: `${wire.name}@${wire.id}` };
}

/** A template by its name, or as it was built. */
export type TemplateLike = string | TemplateBuild | TemplateVersion;

/**
 * News of a build. As a string it is what `dayfly template build` shows of it:
 * `onEvent: (event) => console.log(String(event))`.
 *
 * `event` is `base` (an image is fetched), `stage`, `cached`, `started`, `output`, `finished`, `baking`, `dropped`
 * (so many `lines` of steps are not kept), `built` or `failed`; which other fields are there depends on it. A later
 * server may know more.
 */
export class BuildEvent {
  readonly event: string;
  readonly number: number | undefined;
  readonly steps: number | undefined;
  readonly text: string | undefined;
  readonly isError: boolean;
  readonly image: string | undefined;
  readonly name: string | undefined;
  readonly percent: number | undefined;
  readonly detail: string | undefined;
  readonly elapsedMs: number | undefined;
  readonly tag: string | undefined;
  readonly version: string | undefined;
  readonly cached: number | undefined;
  readonly lines: number | undefined;
  readonly error: string | undefined;

  /** @internal */
  constructor(wire: Readonly<Record<string, unknown>>) {
    const text = (name: string): string | undefined => (typeof wire[name] === "string" ? wire[name] : undefined);
    const count = (name: string): number | undefined => (typeof wire[name] === "number" ? wire[name] : undefined);
    this.event = text("event") ?? "";
    this.number = count("number");
    this.steps = count("steps");
    this.text = text("text");
    this.isError = wire["is_error"] === true;
    this.image = text("image");
    this.name = text("name");
    this.percent = count("percent");
    this.detail = text("detail");
    this.elapsedMs = count("elapsed_ms");
    this.tag = text("tag");
    this.version = text("version");
    this.cached = count("cached");
    this.lines = count("lines");
    this.error = text("error");
  }

  toString(): string {
    const seconds = `${((this.elapsedMs ?? 0) / 1000).toFixed(1)} s`;
    const progress = `${this.detail ?? "waiting"}, ${this.percent} %`;
    switch (this.event) {
      case "base":
        return `image ${this.image}: ${progress}`;
      case "stage":
        return `${this.name}: ${this.steps} steps`;
      case "cached":
        return `[${this.number}/${this.steps}] cached  ${this.text}`;
      case "started":
        return `[${this.number}/${this.steps}] ${this.text}`;
      case "output":
        return `    ${this.text}`;
      case "finished":
        return `    done in ${seconds}`;
      case "baking":
        return `template: ${progress}`;
      case "dropped":
        return `    (${this.lines} lines are left out)`;
      case "built":
        return `built ${this.name}:${this.tag} in ${seconds} (${this.cached} of ${this.steps} steps from the cache)`;
      case "failed":
        return `failed: ${this.error}`;
      default:
        return this.event;
    }
  }
}
