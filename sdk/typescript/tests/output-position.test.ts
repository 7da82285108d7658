import assert from "node:assert/strict";
import { test } from "node:test";
import { OutputPosition } from "#internal/output-position";

/** Text as the server sends it from an offset on. */
function textFrom(bytes: Uint8Array, offset: number): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(offset));
}

test("a reader that is cut off anywhere reads everything once", () => {
  const bytes = Buffer.concat([
    Buffer.from("aé🦀\r\n"),
    Buffer.from([0xff, 0xfe]),
    Buffer.from("b\uFFFDх🦀"),
    Buffer.from([0xe2, 0x82]),
    Buffer.from("end"),
  ]);
  const whole = textFrom(bytes, 0);
  const characters = [...whole];
  for (let first = 0; first <= characters.length; first += 1) {
    for (let second = first; second <= characters.length; second += 1) {
      const position = new OutputPosition();
      let heard = position.take(characters.slice(0, first).join(""));
      // The second connection is cut as well, the third one reads to the end one by one.
      const again = [...textFrom(bytes, position.attachAgain())];
      const skipped = characters.length - again.length;
      heard += position.take(again.slice(0, Math.max(second - skipped, 0)).join(""));
      for (const character of textFrom(bytes, position.attachAgain())) heard += position.take(character);
      assert.equal(heard, whole, `cut after ${first} and ${second}`);
    }
  }
});

test("behind a gap the offset is known again", () => {
  const position = new OutputPosition();
  position.take("a\uFFFD");
  position.gap(10, 90);
  assert.equal(position.attachAgain(), 100);
  assert.equal(position.take("bc"), "bc");
  assert.equal(position.attachAgain(), 102);
});
