/** Tools in the shape of the package `ai` (Vercel's AI SDK), which is not needed for it. */

import type { Arguments } from "./arguments.js";
import type { ToolDefinition } from "./definition.js";
import type { ToolResult } from "./result.js";

/** A Standard Schema, as far as the AI SDK reads one. */
interface StandardSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "dayfly";
    readonly validate: (value: unknown) => { readonly value: Record<string, unknown> };
    readonly jsonSchema: {
      readonly input: () => Record<string, unknown>;
      readonly output: () => Record<string, unknown>;
    };
  };
}

type ModelOutput =
  | { type: "text"; value: string }
  | { type: "error-text"; value: string }
  | {
      type: "content";
      value: (
        | { type: "text"; text: string }
        | { type: "image-data"; mediaType: string; data: string }
      )[];
    };

/** A tool for `generateText` and `streamText` of the AI SDK. */
export interface AiSdkTool {
  description: string;
  inputSchema: StandardSchema;
  execute: (input: Record<string, unknown>, options?: { abortSignal?: AbortSignal | undefined }) => Promise<ToolResult>;
  toModelOutput: (options: { output: ToolResult }) => ModelOutput;
}

type Call = (name: string, given: Arguments, options: { signal?: AbortSignal | undefined }) => Promise<ToolResult>;

/** @internal */
export function aiSdkTool({ name, description, input }: ToolDefinition, call: Call): AiSdkTool {
  const jsonSchema = (): Record<string, unknown> => structuredClone(input);
  return {
    description,
    inputSchema: {
      "~standard": {
        version: 1,
        vendor: "dayfly",
        // The call itself refuses what does not fit, in words for the model.
        validate: (value) => ({ value: value as Record<string, unknown> }),
        jsonSchema: { input: jsonSchema, output: jsonSchema },
      },
    },
    execute: (given, options) => call(name, given, { signal: options?.abortSignal }),
    toModelOutput: ({ output }) => modelOutput(output),
  };
}

function modelOutput({ text, isError, images }: ToolResult): ModelOutput {
  if (isError) return { type: "error-text", value: text };
  if (images.length === 0) return { type: "text", value: text };
  const files = images.map(({ mediaType, data }) => {
    return { type: "image-data", mediaType, data } as const;
  });
  return { type: "content", value: [{ type: "text", text }, ...files] };
}
