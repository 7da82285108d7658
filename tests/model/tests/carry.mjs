// Carries requests with the published npm packages. One JSON object a line comes in, with a number, an
// address, a format and a body; one goes out for each, with the response or the error.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

// The packages are installed elsewhere, and only resolved from there.
const require = createRequire(`${process.argv[2]}/package.json`);
const Anthropic = require("@anthropic-ai/sdk").default;
const OpenAI = require("openai").default;

const formats = {
  anthropic: ({ address, body, is_stream, limits }) => {
    const { messages } = new Anthropic({ apiKey: "key", baseURL: address, ...limits });
    return is_stream ? messages.stream(body).finalMessage() : messages.create(body);
  },
  chat: ({ address, body, is_stream, limits }) => {
    const { completions } = new OpenAI({ apiKey: "key", baseURL: `${address}/v1`, ...limits }).chat;
    return is_stream
      ? completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
      : completions.create(body);
  },
  responses: ({ address, body, is_stream, limits }) => {
    const { responses } = new OpenAI({ apiKey: "key", baseURL: `${address}/v1`, ...limits });
    return is_stream ? responses.stream(body).finalResponse() : responses.create(body);
  },
};

// The timeout of the packages ends with the header of a response, so a stream needs one of its own.
async function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the response took too long")), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function carry(request) {
  try {
    const value = await within(request.limits.timeout * 2, formats[request.format](request));
    return { value };
  } catch (error) {
    return { status: error.status ?? null, kind: error.constructor.name, message: String(error.message) };
  }
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const request = JSON.parse(line);
  const response = await carry(request);
  process.stdout.write(`${JSON.stringify({ number: request.number, ...response })}\n`);
});
