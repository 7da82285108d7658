/** Lines of a Dockerfile that mean exactly the values that they are made of. */

import type { Command } from "./exec-options.js";
import { InvalidSettings } from "./failures.js";

/** What no part of a Dockerfile expands, unquotes or splits. */
const PLAIN = /^[A-Za-z0-9_./:@%+=,-]+$/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const TEMPLATE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const OWNER = /^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?$/;
const SEVERAL_LINES = /[\n\r\0]/;
const ESCAPE_DIRECTIVE = /^(\uFEFF?#[^\n]*\n)*\uFEFF?#\s*escape\s*=\s*`/i;
const READY_FLAGS = "--interval=1s --start-period=60s";

/** `FROM` an image of a registry, never a template that has the same name. */
export function imageLine(image: string): string {
  if (!PLAIN.test(image) || image.startsWith("-")) throw refused(`${show(image)} is not the name of an image`);
  return /[/:@]/.test(image) ? `FROM ${image}` : `FROM ${image}:latest`;
}

/** `FROM` a template of the server. */
export function templateLine(name: string): string {
  // As a FROM it would be the image of a registry.
  if (!TEMPLATE_NAME.test(name)) throw refused(`${show(name)} is not the name of a template of the server, as "base" is`);
  return `FROM ${name}`;
}

export function runLine(command: Command): string {
  if (typeof command !== "string") return `RUN ${words("run", command)}`;
  if (fitsOnALine(command)) return `RUN ${command}`;
  if (command.trim() === "") throw refused("run needs a command");
  if (command.includes("\0")) throw refused("run has a NUL character in it");
  const lines = new Set(command.split("\n").map((line) => line.replace(/\r+$/, "")));
  let marker = "END";
  for (let number = 1; lines.has(marker); number += 1) marker = `END${number}`;
  return `RUN <<${marker}\n${command}${command.endsWith("\n") ? "" : "\n"}${marker}`;
}

/** `COPY` of paths below the build context, which are no patterns here. */
export function copyLine(sources: readonly string[], destination: string, owner?: string, mode?: number): string {
  let flags = "";
  if (owner !== undefined) {
    if (!OWNER.test(owner)) throw refused(`${show(owner)} is not a user, or a user and a group, as "agent:agent"`);
    flags += `--chown=${owner} `;
  }
  if (mode !== undefined) {
    if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) throw refused(`${mode} is not a mode, as 0o755 is`);
    flags += `--chmod=${mode.toString(8)} `;
  }
  if (destination === "") throw refused("copy needs a destination");
  if (sources.length > 1 && !destination.endsWith("/")) {
    throw refused(`${show(destination)} is to hold several files: end it with a slash`);
  }
  // Variables and quotes are looked for in the words of the list as well.
  const given = [...sources.map(noPattern), destination].map((one) => one.replace(/[\\'"$]/g, "\\$&"));
  return `COPY ${flags}${words("copy", given)}`;
}

export function envLine(values: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(values).map(([name, value]) => {
    if (!VARIABLE_NAME.test(name)) throw refused(`${show(name)} is not the name of an environment variable`);
    // Values are often secrets, and errors are logged.
    if (typeof value !== "string") throw new TypeError(`env.${name} is not a string`);
    if (SEVERAL_LINES.test(value)) {
      throw refused(`env.${name} has more than one line, which a template cannot keep; set it when a sandbox is created`);
    }
    return `${name}=${quoted(value)}`;
  });
  if (pairs.length === 0) throw refused("env needs a variable");
  return `ENV ${pairs.join(" ")}`;
}

export function workdirLine(path: string): string {
  return `WORKDIR ${literal("workdir", path)}`;
}

export function userLine(name: string): string {
  return `USER ${literal("user", name)}`;
}

export function startLines(command: Command, ready: Command | undefined): string {
  const start = `CMD ${commandText("start", command)}`;
  return ready === undefined ? start : `HEALTHCHECK ${READY_FLAGS} CMD ${commandText("ready", ready)}\n${start}`;
}

/** Whether a Dockerfile has another escape character than the lines that are made here. */
export function escapesOtherwise(dockerfile: string): boolean {
  return ESCAPE_DIRECTIVE.test(dockerfile);
}

/** Whether a Dockerfile may need files of its build context. */
export function takesFiles(dockerfile: string): boolean {
  return dockerfile.split("\n").some((line) => {
    return (/^\s*(copy|add)/i.test(line) && !/--from=/i.test(line)) || /--mount/i.test(line);
  });
}

/** Whether it is the text of a Dockerfile, and not its path. */
export function isDockerfileText(textOrPath: string): boolean {
  return textOrPath.includes("\n") || /^\s*from /i.test(textOrPath);
}

/** The form of a command that no shell reads. */
function words(what: string, given: readonly string[]): string {
  if (!Array.isArray(given) || given.length === 0 || !given.every((one) => typeof one === "string")) {
    throw new TypeError(`${what} takes a string or a list of strings`);
  }
  if (given.some((one) => one.includes("\0"))) throw refused(`${what} has a NUL character in it`);
  return `[${given.map((one) => JSON.stringify(one)).join(", ")}]`;
}

function commandText(what: string, command: Command): string {
  if (typeof command !== "string") return words(what, command);
  if (fitsOnALine(command) && !/^(\[|--)/.test(command)) return command;
  if (command.trim() === "") throw refused(`${what} needs a command`);
  return words(what, ["/bin/sh", "-c", command]);
}

/** Whether a command stays what it is behind RUN: one line, that no other continues, and that announces no document. */
function fitsOnALine(command: string): boolean {
  const isMarked = command.endsWith("\\") || command.includes("<<");
  return command !== "" && !SEVERAL_LINES.test(command) && command === command.trim() && !isMarked;
}

function literal(what: string, text: string): string {
  if (text === "" || SEVERAL_LINES.test(text)) throw refused(`${what} is one line, not ${show(text)}`);
  return PLAIN.test(text) ? text : quoted(text);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\$]/g, "\\$&")}"`;
}

/** A path as a pattern that matches it alone. */
function noPattern(path: string): string {
  if (!/[*?[]/.test(path)) return path;
  return path.replace(/[*?[\\]/g, (mark) => (mark === "\\" ? "[\\\\]" : `[${mark}]`));
}

function show(text: string): string {
  return JSON.stringify(text);
}

function refused(message: string): InvalidSettings {
  return new InvalidSettings(message);
}
