/** Templates of a project, and building them. */

import { contextFiles, packForm, relativeSource } from "./build-context.js";
import { BuildFollower, type BuildListener, getBuild } from "./build-follow.js";
import { type TemplateBuild, templateBuild, type TemplateVersion, templateVersion, type WireBuild } from "./builds.js";
import { connectionOf } from "./client.js";
import type { ConnectionOptions } from "./config.js";
import type { Connection } from "./connection.js";
import type { NetworkOptions } from "./create.js";
import * as text from "./dockerfile-text.js";
import { DayflyError, NotFound } from "./errors.js";
import type { Command } from "./exec-options.js";
import { InvalidSettings } from "./failures.js";
import { checkedName } from "./ids.js";
import { CALL_DEADLINE_MS, INTERRUPT_DEADLINE_MS, UPLOAD_BYTES_PER_MS_MIN } from "./limits.js";
import { refuseUnknown, toSnake } from "./names.js";
import { requireBuiltIn } from "./runtime.js";
import type { LocalPath } from "./transfer.js";
import { makeOrUndo } from "./undo.js";
import type { Wire } from "./wire.js";

/** Where `copy` takes files from. */
export interface ContextOptions {
  /** A local directory. Default: the working directory. */
  context?: string | undefined;
}

/** Options of `copy`. */
export interface CopyOptions {
  /** A user, or a user and a group, as `agent:agent`. Default: root. */
  owner?: string | undefined;
  /** Of files and directories. Default: what files have. */
  mode?: number | undefined;
}

/** Options of `start`. */
export interface StartOptions {
  /** A command that succeeds once what was started can be used; the build waits for it. */
  ready?: Command | undefined;
}

/** Options of `build`. */
export interface BuildOptions extends ConnectionOptions, NetworkOptions {
  /** Which is to mean the new version. Default `latest`. */
  tag?: string | undefined;
  description?: string | undefined;
  /** CPUs of the steps, and of sandboxes that are made from it. */
  cpu?: number | undefined;
  memoryMb?: number | undefined;
  diskGb?: number | undefined;
  /** The stage of the Dockerfile to build. Default: the last. */
  target?: string | undefined;
  /** Values of its `ARG`. */
  buildArgs?: Readonly<Record<string, string>> | undefined;
  /** Does every step, whatever is kept of earlier builds. */
  fresh?: boolean | undefined;
  /** Hears of each step. Default: nobody does. */
  onEvent?: BuildListener | undefined;
  /** With `false` the build is given as it begins; see `Template.waitBuild`. Default `true`. */
  wait?: boolean | undefined;
  /** Ends the build. Steps that were done are kept. */
  signal?: AbortSignal | undefined;
}

const BUILD_OPTIONS = [
  ...["tag", "description", "cpu", "memoryMb", "diskGb", "target", "buildArgs", "fresh", "onEvent", "wait", "signal"],
  ...["network", "egressAllowlist"],
];

/** A Dockerfile, and which files of the build context it takes. */
interface Steps {
  readonly dockerfile: string;
  readonly context: string;
  readonly sources: readonly string[];
}

/**
 * Builds a template of the project, step by step; the server does the work. Each call gives a new builder with a
 * step more. Begin with `fromImage`, `fromTemplate` or `fromDockerfile`.
 *
 * @example
 * ```ts
 * const built = await Template.fromImage("python:3.12")
 *   .run("pip install flask")
 *   .copy("src", "/app")
 *   .env({ PORT: "8000" })
 *   .workdir("/app")
 *   .start("python3 server.py", { ready: "curl -sf localhost:8000" })
 *   .build("web");
 * await using sandbox = await Sandbox.create({ template: built });
 * ```
 */
export class Template {
  readonly #steps: Steps;

  private constructor(steps: Steps) {
    this.#steps = steps;
  }

  /** Begins with the image of a registry, by tag or digest, as `python:3.12`. */
  static fromImage(image: string, options: ContextOptions = {}): Template {
    return Template.#begin("Template.fromImage", text.imageLine(image), options);
  }

  /** Begins with a template of the server, as `base`. */
  static fromTemplate(name: string, options: ContextOptions = {}): Template {
    return Template.#begin("Template.fromTemplate", text.templateLine(name), options);
  }

  /**
   * Begins with a Dockerfile: its path, or its text, which begins with `FROM` or has more than one line. Further
   * steps come behind it. If it has a `COPY`, what is in `context` is sent, but for what a `.dockerignore` there hides.
   */
  static async fromDockerfile(textOrPath: LocalPath, options: ContextOptions = {}): Promise<Template> {
    refuseUnknown("Template.fromDockerfile", options, ["context"]);
    const isText = typeof textOrPath === "string" && text.isDockerfileText(textOrPath);
    const fs = isText ? undefined : await requireBuiltIn("node:fs/promises", "Template.fromDockerfile");
    const dockerfile = fs === undefined ? String(textOrPath) : await fs.readFile(textOrPath, "utf8");
    const sources = text.takesFiles(dockerfile) ? ["."] : [];
    return new Template({ dockerfile, context: options.context ?? ".", sources });
  }

  static #begin(what: string, line: string, options: ContextOptions): Template {
    refuseUnknown(what, options, ["context"]);
    return new Template({ dockerfile: `${line}\n`, context: options.context ?? ".", sources: [] });
  }

  /**
   * Runs a command when the template is built: a text for the shell, or a list of words. Of several lines only the
   * status of the last counts, unless the first is `set -e`.
   */
  run(command: Command): Template {
    return this.#with(text.runLine(command));
  }

  /**
   * Copies files or directories of the build context. Of a directory the contents are copied, as with `COPY`. A
   * destination that ends with a slash is a directory, which several sources need. Links are followed. Directories
   * without files are left out.
   */
  copy(source: string | readonly string[], destination: string, options: CopyOptions = {}): Template {
    refuseUnknown("Template.copy", options, ["owner", "mode"]);
    const given = typeof source === "string" ? [source] : source;
    const sources = given.map((one) => relativeSource(this.#steps.context, one));
    if (sources.length === 0) throw new InvalidSettings("copy needs a source");
    return this.#with(text.copyLine(sources, destination, options.owner, options.mode), sources);
  }

  /**
   * Environment variables of the steps below and of every command in its sandboxes. They are kept with the template,
   * so none should be a secret.
   */
  env(variables: Readonly<Record<string, string>>): Template {
    return this.#with(text.envLine(variables));
  }

  /** The directory of the steps below and of commands; it is made. */
  workdir(path: string): Template {
    return this.#with(text.workdirLine(path));
  }

  /** The user of the steps below and of commands. */
  user(name: string): Template {
    return this.#with(text.userLine(name));
  }

  /** A command that is started before the template is captured, and goes on in every sandbox. */
  start(command: Command, options: StartOptions = {}): Template {
    refuseUnknown("Template.start", options, ["ready"]);
    return this.#with(text.startLines(command, options.ready));
  }

  /** The steps as the server gets them. */
  get dockerfile(): string {
    return this.#steps.dockerfile;
  }

  #with(line: string, more: readonly string[] = []): Template {
    const { dockerfile, context, sources } = this.#steps;
    if (text.escapesOtherwise(dockerfile)) {
      throw new InvalidSettings("steps cannot be added to a Dockerfile with an escape directive");
    }
    const end = dockerfile.endsWith("\n") ? "" : "\n";
    return new Template({ dockerfile: `${dockerfile}${end}${line}\n`, context, sources: [...sources, ...more] });
  }

  /**
   * Builds a version of the template `name`, and has a tag mean it. Steps that an earlier build of the project did
   * are not done again. A step that fails is `BuildFailed`.
   */
  async build(name: string, options: BuildOptions = {}): Promise<TemplateBuild> {
    const connection = connectionOf("Template.build", options, BUILD_OPTIONS);
    const { signal, onEvent } = options;
    const { context, sources } = this.#steps;
    const form = await packForm(formFields(name, this.dockerfile, options), await contextFiles(context, sources));
    const call = {
      method: "POST",
      path: ["templates", "build"],
      content: form.content,
      headers: { "content-type": form.type },
      deadlineMs: CALL_DEADLINE_MS + form.length / UPLOAD_BYTES_PER_MS_MIN,
    } as const;
    const cancel = (id: string): Promise<void> => cancelBuild(connection, id);
    const start = (): Promise<WireBuild> => connection.json<WireBuild>(call);
    const started = templateBuild(await makeOrUndo(connection, signal, start, ({ id }) => cancel(id)));
    if (options.wait === false) return started;
    try {
      return await new BuildFollower(connection, started.id, onEvent, signal).follow();
    } catch (error) {
      // Aborted, or a fault of who listens: nobody waits for it any more.
      if (signal?.aborted || !(error instanceof DayflyError)) connection.inBackground(cancel(started.id));
      throw error;
    }
  }

  /** A build by its id, as it is now. */
  static async getBuild(buildId: string, options: ConnectionOptions = {}): Promise<TemplateBuild> {
    return await getBuild(connectionOf("Template.getBuild", options), checkedName("build id", buildId));
  }

  /** Waits until a build is done. `onEvent` hears of it from its first event on; `signal` ends the wait alone. */
  static async waitBuild(
    buildId: string,
    options: ConnectionOptions & Pick<BuildOptions, "onEvent" | "signal"> = {},
  ): Promise<TemplateBuild> {
    const connection = connectionOf("Template.waitBuild", options, ["onEvent", "signal"]);
    const id = checkedName("build id", buildId);
    return await new BuildFollower(connection, id, options.onEvent, options.signal).follow();
  }

  /** Ends a build. Its steps are kept for the next one. */
  static async cancelBuild(buildId: string, options: ConnectionOptions = {}): Promise<void> {
    await cancelBuild(connectionOf("Template.cancelBuild", options), checkedName("build id", buildId));
  }

  /** All versions of a template of the project, newest first. */
  static async versions(name: string, options: ConnectionOptions = {}): Promise<TemplateVersion[]> {
    const call = { method: "GET", path: pathOf(name, "versions") } as const;
    const list = await connectionOf("Template.versions", options).json<Wire["TemplateVersionList"]>(call);
    return list.items.map(templateVersion);
  }

  /** One version of a template, by its id or by a tag. */
  static async get(name: string, version = "latest", options: ConnectionOptions = {}): Promise<TemplateVersion> {
    const call = { method: "GET", path: pathOf(name, "versions", version) } as const;
    return templateVersion(await connectionOf("Template.get", options).json(call));
  }

  /** Lets a tag mean a version, to promote it or to go back. Sandboxes stay as they are. */
  static async tag(name: string, version: string, tag: string, options: ConnectionOptions = {}): Promise<TemplateVersion> {
    const call = { method: "PUT", path: pathOf(name, "tags", tag), json: { version } } as const;
    return templateVersion(await connectionOf("Template.tag", options).json(call));
  }

  /** Deletes a tag; the version stays. */
  static async untag(name: string, tag: string, options: ConnectionOptions = {}): Promise<void> {
    await gone(connectionOf("Template.untag", options), pathOf(name, "tags", tag));
  }

  /**
   * Deletes a template with all its versions and tags, or one version that no tag means. Sandboxes and snapshots that
   * were made from it stay.
   */
  static async delete(name: string, version?: string, options: ConnectionOptions = {}): Promise<void> {
    const below = version === undefined ? [] : ["versions", version];
    await gone(connectionOf("Template.delete", options), pathOf(name, ...below));
  }
}

function formFields(named: string, dockerfile: string, options: BuildOptions): Record<string, string> {
  const [name = "", tag] = named.split(":", 2);
  if (tag !== undefined && options.tag !== undefined) {
    throw new InvalidSettings(`${JSON.stringify(named)} has a tag: give it, or the option tag`);
  }
  const { description, cpu, memoryMb, diskGb, target, buildArgs, fresh, egressAllowlist } = options;
  if (options.network !== undefined && egressAllowlist !== undefined) {
    throw new InvalidSettings("give network or egressAllowlist, not both");
  }
  const network = egressAllowlist === undefined ? options.network : { mode: "allowlist", rules: egressAllowlist };
  const fields = {
    ...{ name, tag: tag ?? options.tag, dockerfile, description, cpu, memory_mb: memoryMb, target },
    size_mb: diskGb === undefined ? undefined : Math.round(diskGb * 1024),
    build_args: buildArgs === undefined ? undefined : JSON.stringify(buildArgs),
    network: network === undefined ? undefined : JSON.stringify(toSnake(network)),
    fresh: fresh === true ? true : undefined,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([field, value]) => [field, String(value)]));
}

function pathOf(name: string, ...below: readonly string[]): string[] {
  const [kind, ...rest] = below;
  const path = ["templates", checkedName("template name", name)];
  return kind === undefined ? path : [...path, kind, ...rest.map((one) => checkedName("version or tag", one))];
}

async function cancelBuild(connection: Connection, id: string): Promise<void> {
  await gone(connection, ["templates", "builds", id], INTERRUPT_DEADLINE_MS);
}

/** Deletes what may be gone already. */
async function gone(connection: Connection, path: string[], deadlineMs = CALL_DEADLINE_MS): Promise<void> {
  try {
    await connection.done({ method: "DELETE", path, deadlineMs });
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
  }
}
