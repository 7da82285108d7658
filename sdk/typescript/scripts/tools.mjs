// The definitions of the tools as a module, with a type for the arguments of each.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const typeName = (name) => camel(`_${name}`);

function typeOf(rule) {
  if (rule.enum !== undefined) return rule.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (rule.type === "array") return `readonly ${typeOf(rule.items)}[]`;
  return rule.type === "integer" ? "number" : rule.type;
}

function argumentsOf({ name, input }) {
  const fields = Object.entries(input.properties).map(([argument, rule]) => {
    const given = rule.default === undefined ? "" : ` Default ${JSON.stringify(rule.default)}.`;
    const isRequired = input.required.includes(argument);
    const type = isRequired ? typeOf(rule) : `${typeOf(rule)} | undefined`;
    return `  /** ${rule.description}${given} */\n  ${camel(argument)}${isRequired ? "" : "?"}: ${type};\n`;
  });
  return `/** Arguments of the tool \`${name}\`. */\nexport interface ${typeName(name)}Arguments {\n${fields.join("")}}\n`;
}

export function toolsText(folder) {
  const read = (name) => {
    const { version, tools } = JSON.parse(readFileSync(join(folder, name), "utf8"));
    if (version !== 1) throw new Error(`${name} has version ${version}, not 1`);
    return tools;
  };
  const [sandbox, agent] = [read("tools.json"), read("agent.json")];
  const names = sandbox.map(({ name }) => `  | ${JSON.stringify(name)}\n`).join("").trimEnd();
  return [
    "// Generated from sdk/tools by `npm run generate`. Not to be edited.\n",
    'import type { ToolDefinition } from "../tools/definition.js";\n',
    `/** The tools of a sandbox. */\nexport type SandboxToolName =\n${names};\n`,
    ...sandbox.map(argumentsOf),
    `export const SANDBOX_TOOLS: readonly ToolDefinition[] = ${JSON.stringify(sandbox, undefined, 2)};\n`,
    "/** Tools that need a run of an agent. */",
    `export const AGENT_TOOLS: readonly ToolDefinition[] = ${JSON.stringify(agent, undefined, 2)};\n`,
  ].join("\n");
}
