import assert from "node:assert/strict";
import { test } from "node:test";
import { KeptText } from "#internal/kept-text";

function keep(maxBytes: number, ...pieces: string[]): ReturnType<KeptText["give"]> {
  const kept = new KeptText(maxBytes);
  for (const piece of pieces) kept.add(piece);
  return kept.give();
}

test("what fits is kept as it is, whatever its pieces", () => {
  for (const pieces of [[], ["a"], ["aé", "", "€", "😀"], ["aé€😀"]]) {
    assert.deepEqual(keep(10, ...pieces), { text: pieces.join(""), leftOut: undefined });
  }
});

test("what does not fit loses its middle, and no character is cut in two", () => {
  const text = "aé€😀".repeat(50);
  for (let maxBytes = 1; maxBytes < 60; maxBytes += 1) {
    for (const size of [1, 3, 1000]) {
      const characters = [...text];
      const pieces = Array.from({ length: Math.ceil(characters.length / size) }, (_, index) =>
        characters.slice(index * size, (index + 1) * size).join(""));
      const { text: kept, leftOut } = keep(maxBytes, ...pieces);
      assert.ok(leftOut !== undefined && !kept.includes("\uFFFD"));
      const [head = "", tail = ""] = kept.split(/\n?\[\.\.\. \d+ bytes left out, from offset \d+ \.\.\.\]\n/);
      assert.ok(text.startsWith(head) && text.endsWith(tail));
      assert.equal(Buffer.byteLength(head), leftOut.offset);
      assert.equal(Buffer.byteLength(head) + leftOut.bytes + Buffer.byteLength(tail), Buffer.byteLength(text));
      assert.ok(Buffer.byteLength(head) + Buffer.byteLength(tail) <= maxBytes);
    }
  }
});

test("what is held stays bounded", () => {
  const kept = new KeptText(1000);
  for (let index = 0; index < 10_000; index += 1) kept.add("0123456789");
  assert.equal(kept.give().leftOut?.bytes, 99_000);
});
