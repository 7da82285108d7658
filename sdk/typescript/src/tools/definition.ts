/** What a tool is, as `sdk/tools` has it for all clients, and the shapes in which it is offered to a model. */

/** What an argument may be. Only these words of JSON Schema are in the definitions; a test says so. */
export type ArgumentRule = {
  type: "string" | "integer" | "number" | "boolean" | "array";
  description?: string;
  default?: string | number | boolean;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  items?: ArgumentRule;
  minItems?: number;
  maxItems?: number;
};

/** The arguments of a tool. */
export type ArgumentsSchema = {
  type: "object";
  properties: { [name: string]: ArgumentRule };
  required: string[];
  additionalProperties: false;
};

/** One tool as a model sees it. Those that are `read_only` change nothing in the sandbox. */
export interface ToolDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly read_only: boolean;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  readonly input: ArgumentsSchema;
}

/** A tool in a request to Anthropic's Messages API. */
export type AnthropicTool =
  | { name: string; description: string; input_schema: ArgumentsSchema }
  | { type: "bash_20250124"; name: "bash" }
  | { type: "text_editor_20250728"; name: "str_replace_based_edit_tool" };

/** A tool in a request to OpenAI's Chat Completions API. */
export type OpenAITool = {
  type: "function";
  function: { name: string; description: string; parameters: ArgumentsSchema };
};

/** A tool in a request to OpenAI's Responses API. */
export type OpenAIResponsesTool = {
  type: "function";
  name: string;
  description: string;
  parameters: ArgumentsSchema;
  strict: boolean;
};

/** A tool in a response to MCP's `tools/list`. */
export type McpTool = {
  name: string;
  title: string;
  description: string;
  inputSchema: ArgumentsSchema;
  annotations: { title: string; readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean };
};

/** Copied, so that nobody's change of a request reaches the next one. */
function schemaOf({ input }: ToolDefinition): ArgumentsSchema {
  return structuredClone(input);
}

export function anthropicTool(tool: ToolDefinition): AnthropicTool {
  return { name: tool.name, description: tool.description, input_schema: schemaOf(tool) };
}

export function openaiTool(tool: ToolDefinition): OpenAITool {
  const { name, description } = tool;
  return { type: "function", function: { name, description, parameters: schemaOf(tool) } };
}

export function openaiResponsesTool(tool: ToolDefinition): OpenAIResponsesTool {
  const { name, description } = tool;
  // Strict schemas have no optional fields; these have.
  return { type: "function", name, description, parameters: schemaOf(tool), strict: false };
}

export function mcpTool(tool: ToolDefinition): McpTool {
  const { name, title, description } = tool;
  const annotations = {
    title,
    readOnlyHint: tool.read_only,
    destructiveHint: tool.destructive,
    idempotentHint: tool.idempotent,
  };
  return { name, title, description, inputSchema: schemaOf(tool), annotations };
}
