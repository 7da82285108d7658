// Where the server is, when nobody says so: the file of `dayfly login`.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { InvalidSettings, me } from "dayfly";
import { localAccess } from "#internal/context-file";
import { parseToml } from "#internal/toml";
import { FakeServer, sendJson } from "./fake-server.js";

const directory = mkdtempSync(join(tmpdir(), "dayfly-settings-"));
after(() => rmSync(directory, { recursive: true }));
const before = { ...process.env };
afterEach(() => {
  for (const name of ["DAYFLY_API_URL", "DAYFLY_API_KEY", "DAYFLY_CONFIG"]) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
});

/** Writes a file and gives its path. */
function file(name: string, text: string, mode = 0o600): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function settings(config: string, more: Record<string, string> = {}): void {
  Object.assign(process.env, { DAYFLY_API_URL: "", DAYFLY_API_KEY: "", DAYFLY_CONFIG: config, ...more });
}

async function server(): Promise<FakeServer> {
  return await FakeServer.start((_, response) => sendJson(response, 200, { project: "p" }));
}

const keys = (fake: FakeServer): unknown[] => fake.arrived.map(({ headers }) => headers["authorization"]);

test("the current context of `dayfly login` says where the server is and has its key", async () => {
  const fake = await server();
  const { apiUrl } = fake.options;
  settings(file("a.toml", `current = "lab"  # a comment\n[contexts.lab]\nurl = "${apiUrl}/"\nkey = 'df_lab'\n`));
  await me();
  file("b.key", "df_file\n");
  settings(file("b.toml", `current = "my lab"\n\n[contexts."my lab"]\nurl = "${apiUrl}"\nkey_file = "b.key"\n`));
  await me();
  // The environment comes first, and options before that.
  settings(join(directory, "a.toml"), { DAYFLY_API_KEY: "df_env" });
  await me();
  await me({ apiKey: "df_given" });
  assert.deepEqual(keys(fake), ["Bearer df_lab", "Bearer df_file", "Bearer df_env", "Bearer df_given"]);
});

test("a context's key goes to no other address", async () => {
  const fake = await server();
  settings(file("c.toml", 'current = "lab"\ncontexts = { lab = { url = "http://lab.invalid", key = "df_lab" } }\n'));
  await me({ apiUrl: fake.options.apiUrl });
  assert.deepEqual(keys(fake), [undefined]);
});

test("a file that others can read, or that makes no sense, is refused without its text", async () => {
  const text = 'current = "lab"\n[contexts.lab]\nurl = "http://lab.invalid"\nkey = "df_secret"\n';
  file("f.key", "df_secret", 0o640);
  const cases: [string, RegExp][] = [
    [file("d.toml", text, 0o644), /others can read it/],
    [file("e.toml", text.replace('"df_secret"', '"df_secret')), /line 4 cannot be read/],
    [file("f.toml", text.replace('key = "df_secret"', 'key_file = "f.key"'), 0o644), /f\.key holds a key and others/],
    [file("g.toml", text.replace('"lab"', '"other"')), /no context "other"/],
    [join(directory, "absent.toml"), /does not exist/],
  ];
  for (const [path, said] of cases) {
    settings(path);
    await assert.rejects(me(), (error: unknown) => {
      assert.ok(error instanceof InvalidSettings);
      assert.match(error.message, said);
      assert.ok(!`${error.message}${error.hint ?? ""}`.includes("df_secret"));
      return true;
    });
  }
});

test("a daemon of this host is found by what it wrote for its group", async () => {
  const text = '{"url": "http://127.0.0.1:9", "key": "local-key", "instance": "x"}';
  assert.deepEqual(await localAccess(file("local.json", text, 0o640)), { url: "http://127.0.0.1:9", key: "local-key" });
  assert.equal(await localAccess(join(directory, "absent.json")), undefined);
  await assert.rejects(localAccess(file("broken.json", '{"key": "local-key')), (error: unknown) => {
    return error instanceof InvalidSettings && !error.message.includes("local-key");
  });
});

test("TOML is read as far as a context file needs it, and refused beyond", () => {
  const text = 'a = 1\n"b c".d = \'x\\y\' # z\n[t.u]\ne = "q\\u0041\\"#"\nf = true\n[t]\ng = {h = -2.5, i = "j"}\n';
  const plain: unknown = JSON.parse(JSON.stringify(parseToml(text)));
  assert.deepEqual(plain, {
    a: 1,
    "b c": { d: "x\\y" },
    t: { u: { e: 'qA"#', f: true }, g: { h: -2.5, i: "j" } },
  });
  for (const wrong of ["a", "a =", "a = [1]", 'a = """x"""', "a = 1 2", "a = 1\na = 2", "[a", 'a = "\\q"', "a.b = 1\n[a.b]"]) {
    assert.throws(() => parseToml(wrong), /line \d cannot be read/, wrong);
  }
});
