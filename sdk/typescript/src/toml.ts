/**
 * As much of TOML as a context file needs: tables, dotted and quoted names, strings of one line,
 * numbers, booleans and inline tables. Anything else is refused, never guessed at. No message quotes the
 * text, which may hold a key.
 */

export type TomlValue = string | number | boolean | TomlTable;
export interface TomlTable {
  [name: string]: TomlValue;
}

/** Why a text is not one. */
export class TomlError extends Error {
  constructor(line: number) {
    super(`line ${line} cannot be read`);
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  b: "\b",
  t: "\t",
  n: "\n",
  f: "\f",
  r: "\r",
  '"': '"',
  "\\": "\\",
};

/** Reads a document. */
export function parseToml(text: string): TomlTable {
  const root: TomlTable = emptyTable();
  let table = root;
  text.split(/\r?\n/).forEach((line, index) => {
    const reader = new LineReader(line, index + 1);
    if (reader.isOver()) return;
    if (reader.takes("[")) {
      const path = reader.path();
      reader.expect("]");
      table = tableAt(root, path, reader);
    } else {
      reader.entry(table);
    }
    reader.end();
  });
  return root;
}

/** Without a prototype: a name such as `__proto__` is a name like any other. */
function emptyTable(): TomlTable {
  return Object.create(null) as TomlTable;
}

function tableAt(from: TomlTable, path: readonly string[], reader: LineReader): TomlTable {
  let table = from;
  for (const name of path) {
    const next = (table[name] ??= emptyTable());
    if (typeof next !== "object") throw reader.mistake();
    table = next;
  }
  return table;
}

/** One line, read from its start. */
class LineReader {
  readonly #text: string;
  readonly #number: number;
  #at = 0;

  constructor(text: string, number: number) {
    this.#text = text;
    this.#number = number;
  }

  mistake(): TomlError {
    return new TomlError(this.#number);
  }

  /** Whether there is nothing more but a comment. */
  isOver(): boolean {
    this.#take(/[ \t]*/y);
    return this.#at === this.#text.length || this.#text[this.#at] === "#";
  }

  end(): void {
    if (!this.isOver()) throw this.mistake();
  }

  takes(mark: string): boolean {
    this.#take(/[ \t]*/y);
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  expect(mark: string): void {
    if (!this.takes(mark)) throw this.mistake();
  }

  path(): string[] {
    const names = [this.#name()];
    while (this.takes(".")) names.push(this.#name());
    return names;
  }

  entry(table: TomlTable): void {
    const path = this.path();
    const name = path.pop() ?? "";
    const target = tableAt(table, path, this);
    this.expect("=");
    if (target[name] !== undefined) throw this.mistake();
    target[name] = this.#value();
  }

  #name(): string {
    this.#take(/[ \t]*/y);
    const mark = this.#text[this.#at];
    if (mark === '"' || mark === "'") return this.#string(mark);
    const name = this.#take(/[A-Za-z0-9_-]+/y);
    if (name === undefined) throw this.mistake();
    return name;
  }

  #value(): TomlValue {
    this.#take(/[ \t]*/y);
    const mark = this.#text[this.#at];
    if (mark === '"' || mark === "'") return this.#string(mark);
    if (this.takes("{")) return this.#inlineTable();
    const word = this.#take(/[A-Za-z0-9_.+:-]+/y);
    if (word === "true" || word === "false") return word === "true";
    const number = Number(word?.replaceAll("_", ""));
    if (word === undefined || Number.isNaN(number)) throw this.mistake();
    return number;
  }

  #inlineTable(): TomlTable {
    const table = emptyTable();
    if (this.takes("}")) return table;
    do this.entry(table);
    while (this.takes(","));
    this.expect("}");
    return table;
  }

  #string(mark: string): string {
    // Three marks begin a string of several lines.
    if (this.#text.startsWith(mark.repeat(3), this.#at)) throw this.mistake();
    const found = mark === "'" ? this.#take(/'[^']*'/y) : this.#take(/"(?:[^"\\]|\\.)*"/y);
    if (found === undefined) throw this.mistake();
    const inner = found.slice(1, -1);
    if (mark === "'") return inner;
    return inner.replace(/\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/g, (_, what: string) => this.#escape(what));
  }

  #escape(what: string): string {
    if (what.length > 1) {
      const code = Number.parseInt(what.slice(1), 16);
      if (code > 0x10ffff) throw this.mistake();
      return String.fromCodePoint(code);
    }
    const character = ESCAPES[what];
    if (character === undefined) throw this.mistake();
    return character;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found !== undefined) this.#at += found.length;
    return found;
  }
}
