/**
 * `.dockerignore`, as far as that saves sending files: the server decides about the rest. What is hidden here
 * is hidden by every builder; a pattern that is not understood hides nothing.
 */

interface Rule {
  pattern: RegExp;
  shows: boolean;
}

/** The patterns of a `.dockerignore`. */
export class IgnoreRules {
  /** The last first. */
  readonly #rules: Rule[];

  constructor(text: string) {
    const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
    this.#rules = lines.map(ruleOf).filter((rule) => rule !== undefined).reverse();
  }

  /** Whether a hidden directory may have something in it that is not. */
  get showsAny(): boolean {
    return this.#rules.some(({ shows }) => shows);
  }

  /** The last pattern that matches the path, or a directory that it is in, decides. */
  hides(path: string): boolean {
    return this.#rules.find(({ pattern }) => pattern.test(path))?.shows === false;
  }
}

function ruleOf(line: string): Rule | undefined {
  const text = line.startsWith("#") ? "" : line.trim();
  const shows = text.startsWith("!");
  const pattern = (shows ? text.slice(1) : text).trim();
  const parts = pattern.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0) return undefined;
  // Not understood: all that it could show is shown.
  if (/[[\\]/.test(pattern) || parts.includes("..")) return shows ? { pattern: /^/, shows } : undefined;
  return { pattern: new RegExp(`^${expression(parts.join("/"))}(?:/|$)`, "su"), shows };
}

function expression(pattern: string): string {
  let found = "";
  let rest = pattern;
  while (rest !== "") {
    const [mark = ""] = /^(\*\*\/|\*\*|\*|\?|[^*?]+)/.exec(rest) ?? [];
    const isFirst = rest === pattern;
    rest = rest.slice(mark.length);
    if (mark === "**/") found += "(?:.*/)?";
    else if (mark === "**") found += rest === "" || (isFirst && !/[*?]/.test(rest)) ? ".*" : "(?:.*/)?";
    else if (mark === "*") found += "[^/]*";
    else if (mark === "?") found += "[^/]";
    else found += mark.replace(/[.+^${}()|[\]\\/]/g, "\\$&");
  }
  return found;
}
