import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser, type SseEvent } from "#internal/sse";

const encoder = new TextEncoder();

const BODY = [
  "\uFEFF: alive\n\n",
  'event: stdout\ndata: {"chunk":"é\u2028х🦀"}\n\n',
  "event:gap\r\ndata:1\r\ndata: 2\r\n\r\n",
  "retry: 5\rid: 7\rdata: cr\revent: last\r\r",
  "data\n\n",
  ": alive\n\n",
  "event: nothing\n\n",
  "data: cut off",
].join("");
const EVENTS: SseEvent[] = [
  { name: "stdout", data: '{"chunk":"é\u2028х🦀"}' },
  { name: "gap", data: "1\n2" },
  { name: "last", data: "cr", id: "7" },
  { name: "message", data: "", id: "7" },
];

test("every split of a body into two gives the same events", () => {
  const bytes = encoder.encode(BODY);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const parser = new SseParser();
    const events = [...parser.push(bytes.subarray(0, cut)), ...parser.push(bytes.subarray(cut))];
    assert.deepEqual(events, EVENTS, `cut at ${cut}`);
  }
});

test("every size of pieces gives the same events", () => {
  const bytes = encoder.encode(BODY);
  for (let size = 1; size <= bytes.length; size += 1) {
    const parser = new SseParser();
    const events: SseEvent[] = [];
    for (let at = 0; at < bytes.length; at += size) events.push(...parser.push(bytes.subarray(at, at + size)));
    assert.deepEqual(events, EVENTS, `pieces of ${size}`);
  }
});

test("an event that does not end is refused, comments add up to nothing", () => {
  const comments = new SseParser();
  const comment = encoder.encode(`: ${"x".repeat(1000)}\n\n`);
  for (let index = 0; index < 3000; index += 1) comments.push(comment);
  const lines = new SseParser();
  for (let index = 0; index < 3000; index += 1) lines.push(encoder.encode(`: ${"x".repeat(1000)}\n`));
  const endless = new SseParser();
  const piece = encoder.encode("data: " + "x".repeat(100_000));
  assert.throws(() => {
    for (let index = 0; index < 20; index += 1) endless.push(piece);
  }, /longer than/);
});
