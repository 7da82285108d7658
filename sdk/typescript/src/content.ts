/** What a file may be written from. */

/** A text, bytes, or a stream of either; a stream of Node is one. */
export type FileData =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>;

/** The same as a request takes it. @internal */
export async function toContent(data: FileData): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  if (typeof data === "string") return new TextEncoder().encode(data);
  if (data instanceof Uint8Array || data instanceof ReadableStream) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (data instanceof Blob) return new Uint8Array(await data.arrayBuffer());
  if (isIterable(data)) return toStream(data);
  throw new TypeError("a file is written from a string, bytes, a Blob or a stream; JSON.stringify makes a string of others");
}

/** A stream of what comes, no faster than it is read. @internal */
export function toStream(source: AsyncIterable<Uint8Array | string>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(typeof value === "string" ? encoder.encode(value) : value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

function isIterable(data: unknown): data is AsyncIterable<Uint8Array | string> {
  return typeof data === "object" && data !== null && Symbol.asyncIterator in data;
}
