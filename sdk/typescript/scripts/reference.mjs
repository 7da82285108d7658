/** Prints the public declarations of the package, with their comments, as Markdown. */
import ts from "typescript";

const entries = [["# TypeScript", "src/index.ts"], ["# TypeScript: `dayfly/agents`", "src/agents/index.ts"]];
const program = ts.createProgram(entries.map(([, entry]) => entry), {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  skipLibCheck: true,
});
const checker = program.getTypeChecker();
const printer = ts.createPrinter({ removeComments: true });

/** The first paragraph of what is said about a symbol. */
function words(symbol) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text.split("\n\n")[0].replace(/\s+/g, " ").trim();
}

function isInternal(symbol) {
  return symbol.getJsDocTags(checker).some((tag) => tag.name === "internal");
}

/** A declaration without its body, in one line. */
function head(declaration) {
  let node = declaration;
  const f = ts.factory;
  if (ts.isMethodDeclaration(node)) {
    node = f.updateMethodDeclaration(node, node.modifiers, node.asteriskToken, node.name, node.questionToken,
      node.typeParameters, node.parameters, node.type, undefined);
  } else if (ts.isGetAccessorDeclaration(node)) {
    node = f.updateGetAccessorDeclaration(node, node.modifiers, node.name, node.parameters, node.type, undefined);
  } else if (ts.isFunctionDeclaration(node)) {
    node = f.updateFunctionDeclaration(node, node.modifiers, node.asteriskToken, node.name,
      node.typeParameters, node.parameters, node.type, undefined);
  } else if (ts.isPropertyDeclaration(node)) {
    node = f.updatePropertyDeclaration(node, node.modifiers, node.name, node.questionToken, node.type, undefined);
  }
  const text = printer.printNode(ts.EmitHint.Unspecified, node, declaration.getSourceFile());
  return text.replace(/\s+/g, " ").replace(/^export /, "").replace(/;$/, "").trim();
}

function members(declaration) {
  const lines = [];
  for (const member of declaration.members ?? []) {
    const flags = ts.getCombinedModifierFlags(member);
    const isPrivate = flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected);
    const name = member.name;
    if (!name || isPrivate || ts.isPrivateIdentifier(name)) continue;
    const symbol = checker.getSymbolAtLocation(name);
    if (!symbol || isInternal(symbol)) continue;
    // Of an overloaded method only the last has a body; all are worth showing but that one.
    const said = words(symbol);
    lines.push(`- \`${head(member)}\`${said ? `: ${said}` : ""}`);
  }
  return lines;
}

function described(exported) {
  const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
  const declaration = symbol.declarations?.[0];
  if (!declaration || isInternal(symbol)) return [];
  const kind = ts.isClassDeclaration(declaration) ? "class"
    : ts.isInterfaceDeclaration(declaration) ? "interface"
    : ts.isTypeAliasDeclaration(declaration) ? "type"
    : "";
  const title = ts.isFunctionDeclaration(declaration) ? head(declaration) : `${kind} ${exported.name}`.trim();
  const lines = [`## \`${title}\``, "", words(symbol), ""];
  if (kind === "type") lines.push("```ts", printer.printNode(ts.EmitHint.Unspecified, declaration, declaration.getSourceFile()), "```");
  else lines.push(...members(declaration));
  return [...lines, ""];
}

const lines = [];
for (const [title, entry] of entries) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry));
  const symbols = checker.getExportsOfModule(module).sort((a, b) => a.name.localeCompare(b.name));
  lines.push(title, "", ...symbols.flatMap(described));
}
console.log(lines.join("\n"));
