// What goes wrong on the way to a server is said as what it is, and alike on Node, Bun and Deno.

import assert from "node:assert/strict";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { Client, me, Sandbox, templates } from "dayfly";
import { CERTIFICATE, CERTIFICATE_KEY } from "./certificate.js";
import { FakeServer, SANDBOX, sendJson } from "./fake-server.js";
import { onOtherPlatforms } from "./other-platforms.js";
import { type Told, tell } from "./transport-cases.js";

/** Addresses at which something is wrong. */
async function addresses(): Promise<{ urls: Record<string, string>; tries: () => number }> {
  const server = await FakeServer.start((request, response) => {
    if (request.path.startsWith("/cut/")) return void response.destroy();
    if (request.path.startsWith("/moved/")) {
      response.writeHead(308, { location: `https://dayfly.example${request.path}` });
      return void response.end();
    }
    response.writeHead(request.path.startsWith("/page404/") ? 404 : 200, { "content-type": "text/html; charset=utf-8" });
    return void response.end("<html>hello</html>");
  });
  const dead = await FakeServer.start(() => undefined);
  const deadUrl = dead.options.apiUrl;
  dead.stop();
  let handshakes = 0;
  const tls = createTlsServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }).on("connection", () => (handshakes += 1));
  await new Promise<void>((resolve) => tls.listen(0, "127.0.0.1", resolve));
  after(() => void tls.closeAllConnections());
  after(() => void tls.close());
  const { apiUrl } = server.options;
  const urls = {
    dead: deadUrl,
    cut: `${apiUrl}/cut`,
    moved: `${apiUrl}/moved`,
    page: `${apiUrl}/page`,
    page404: `${apiUrl}/page404`,
    untrusted: `https://127.0.0.1:${(tls.address() as AddressInfo).port}`,
    plain: apiUrl.replace("http:", "https:"),
  };
  return { urls, tries: () => handshakes };
}

const EXPECTED: Record<string, Partial<Told> & { says: RegExp; hints: RegExp }> = {
  dead: { name: "ServerUnreachable", says: /cannot reach/, hints: /DAYFLY_API_URL/ },
  cut: { name: "AnswerLost", says: /lost/, hints: /^$/ },
  moved: { name: "ProtocolError", says: /308 redirects to https:\/\/dayfly\.example\/moved/, hints: /DAYFLY_API_URL to https/ },
  page: { name: "ProtocolError", says: /web page/, hints: /DAYFLY_API_URL/ },
  page404: { name: "ApiError", says: /404 with a web page/, hints: /DAYFLY_API_URL/ },
  untrusted: { name: "CertificateRefused", says: /certificate of https/, hints: /NODE_EXTRA_CA_CERTS/ },
  plain: { name: "ServerUnreachable", says: /cannot reach/, hints: /no TLS.*try http:/ },
};

function check(told: Record<string, Told>): void {
  for (const [name, { says, hints, ...exact }] of Object.entries(EXPECTED)) {
    const one = told[name];
    assert.ok(one !== undefined, name);
    assert.equal(one.name, exact.name, `${name}: ${JSON.stringify(one)}`);
    assert.match(one.message, says, name);
    assert.match(one.hint, hints, name);
  }
}

test("what goes wrong is named, and a certificate is not tried twice", { timeout: 60_000 }, async () => {
  const { urls, tries } = await addresses();
  check(await tell({ Client, me }, urls));
  assert.equal(tries(), 1);
});

onOtherPlatforms("what goes wrong is named", async (run) => {
  const { urls } = await addresses();
  check((await run("transport-cases.js", JSON.stringify(urls))) as Record<string, Told>);
});

test("a silent command outlasts the platform's own limits, whoever has them", async () => {
  const limits = [
    new TypeError("fetch failed", { cause: Object.assign(new Error("no head"), { code: "UND_ERR_HEADERS_TIMEOUT" }) }),
    new DOMException("The operation timed out.", "TimeoutError"),
  ];
  const result = { stdout: "late\n", stderr: "", exit_code: 0, duration_ms: 1, reason: "exited", truncated: false };
  for (const limit of limits) {
    const ids = new Set<unknown>();
    let tries = 0;
    const server = await FakeServer.start((_, response) => sendJson(response, 200, SANDBOX));
    const client = new Client({
      ...server.options,
      maxRetries: 0,
      fetch: (input, init) => {
        if (!String(input).endsWith("/exec")) return fetch(input, init);
        const body = JSON.parse(String(init?.body)) as { exec_id: string };
        ids.add(body.exec_id);
        tries += 1;
        return tries < 5 ? Promise.reject(limit) : Promise.resolve(Response.json({ ...result, exec_id: body.exec_id }));
      },
    });
    const sandbox = await Sandbox.connect("sb-1", { client });
    assert.equal((await sandbox.exec("sleep 3600; echo late")).stdout, "late\n");
    assert.equal(ids.size, 1);
    tries = 0;
    await assert.rejects(templates({ client: new Client({ ...server.options, fetch: () => Promise.reject(limit), maxRetries: 0 }) }));
  }
});

test("Node's own limit on a silent response does not end a command", { timeout: 60_000 }, async () => {
  const result = { stdout: "late\n", stderr: "", exit_code: 0, duration_ms: 1, reason: "exited", truncated: false };
  const start = Date.now();
  const server = await FakeServer.start((request, response) => {
    if (!request.path.endsWith("/exec")) return sendJson(response, 200, SANDBOX);
    // Silent at first, for longer than the limit below; whoever asks later is answered.
    const isLate = Date.now() - start > 2_500;
    return isLate ? sendJson(response, 200, { ...result, exec_id: request.json["exec_id"] }) : undefined;
  });
  await fetch(server.options.apiUrl);
  const symbol = Symbol.for("undici.globalDispatcher.1");
  const { constructor: Agent } = (globalThis as unknown as Record<symbol, object>)[symbol] as object;
  const dispatcher: unknown = Reflect.construct(Agent, [{ headersTimeout: 500 }]);
  const impatient: typeof fetch = (input, init) => fetch(input, { ...init, dispatcher } as RequestInit);
  const client = new Client({ ...server.options, maxRetries: 0, fetch: impatient });
  const sandbox = await Sandbox.connect("sb-1", { client });
  assert.equal((await sandbox.exec("sleep 3; echo late")).stdout, "late\n");
  const ids = server.at("POST", "/v1/sandboxes/sb-1/exec").map(({ json }) => json["exec_id"]);
  assert.ok(ids.length > 1);
  assert.equal(new Set(ids).size, 1);
});
