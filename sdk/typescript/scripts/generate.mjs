// Writes the types of the wire from the API's description, or checks that they are current.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, "..", "..", "openapi", "v1.json");
const target = join(root, "src", "generated", "api.ts");

const head = "// Generated from openapi/v1.json by `npm run generate`. Not to be edited.\n\n";
// The shapes alone: the routes are eight times as long, and nothing here is typed by them.
const shapes = (await openapiTS(pathToFileURL(source))).filter((node) => {
  return ts.isInterfaceDeclaration(node) && node.name.text === "components";
});
const text = head + astToString(shapes);
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("src/generated/api.ts is not current: run `npm run generate`");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
