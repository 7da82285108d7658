// Writes what is made from shared files, or checks that it is current: the types of the wire from the
// API's description, and the tools from their definitions.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";
import { toolsText } from "./tools.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

async function apiText() {
  const source = join(root, "..", "..", "openapi", "v1.json");
  const head = "// Generated from openapi/v1.json by `npm run generate`. Not to be edited.\n\n";
  // The shapes alone: the routes are eight times as long, and nothing here is typed by them.
  const shapes = (await openapiTS(pathToFileURL(source))).filter((node) => {
    return ts.isInterfaceDeclaration(node) && node.name.text === "components";
  });
  return head + astToString(shapes);
}

for (const [name, text] of [["api.ts", await apiText()], ["tools.ts", toolsText(join(root, "..", "tools"))]]) {
  const target = join(root, "src", "generated", name);
  if (!process.argv.includes("--check")) {
    writeFileSync(target, text);
  } else if (readFileSync(target, "utf8") !== text) {
    console.error(`src/generated/${name} is not current: run \`npm run generate\``);
    process.exit(1);
  }
}
