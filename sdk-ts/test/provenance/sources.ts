// Sources as sequences of tokens, without the declarations that make up a public interface. Layout, comments, trailing
// commas and the kind of quotes do not count; names do.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** A token, and where it stands in its file. */
export interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Source {
  readonly file: string;
  readonly text: string;
  /** What is left without the public declarations. */
  readonly tokens: readonly Token[];
  /** The same with one name for all names. */
  readonly shapes: readonly Token[];
  /** The words of its comments. */
  readonly words: readonly Token[];
}

/** The files below a directory whose names end like this. */
export function filesBelow(directory: string, endings: readonly string[]): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The names that a package exports: those of its entry points, and of the modules that it exports as a whole. */
export function exportedNames(entries: readonly string[]): Set<string> {
  const program = ts.createProgram(entries, {
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ESNext,
    noLib: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const names = new Set<string>();
  const add = (module: ts.Symbol): void => {
    for (const symbol of checker.getExportsOfModule(module)) {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      names.add(symbol.name);
      if (target.flags & ts.SymbolFlags.ValueModule) add(target);
    }
  };
  for (const entry of entries) add(checker.getSymbolAtLocation(program.getSourceFile(entry)!)!);
  return names;
}

/** Reads a file; declarations whose name is in `publicNames` are left out, but for what they do inside. */
export function readSource(file: string, publicNames: ReadonlySet<string>): Source {
  const text = readFileSync(file, "utf8");
  const kind = file.endsWith(".tsx") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const root = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, kind);
  const tokens: Token[] = [];
  for (const statement of root.statements) {
    for (const node of ownParts(statement, publicNames)) addTokens(node, root, tokens);
  }
  const shapes = tokens.map((token) => (IDENTIFIER.test(token.text) ? { ...token, text: "name" } : token));
  return { file, text, tokens, shapes, words: commentWords(root) };
}

/** The parts of a statement that are not a public declaration. */
function ownParts(statement: ts.Statement, publicNames: ReadonlySet<string>): ts.Node[] {
  if (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) return [];
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap((declaration) =>
      ts.isIdentifier(declaration.name) && publicNames.has(declaration.name.text)
        ? insideOf(declaration.initializer)
        : [declaration],
    );
  }
  const { name } = statement as ts.DeclarationStatement;
  if (!name || !publicNames.has(name.text)) return [statement];
  if (ts.isFunctionDeclaration(statement)) return insideOf(statement.body);
  if (ts.isClassDeclaration(statement)) return statement.members.flatMap(insideOfMember);
  if (ts.isModuleDeclaration(statement) && statement.body && ts.isModuleBlock(statement.body)) {
    return statement.body.statements.flatMap((inner) => ownParts(inner, publicNames));
  }
  return [];
}

/** The members of a class are part of its declaration, but for private ones. */
function insideOfMember(member: ts.ClassElement): ts.Node[] {
  const isPrivate =
    (member.name && ts.isPrivateIdentifier(member.name)) ||
    ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private;
  if (isPrivate) return [member];
  if (ts.isPropertyDeclaration(member)) return insideOf(member.initializer);
  if (ts.isClassStaticBlockDeclaration(member)) return [member];
  return insideOf((member as ts.MethodDeclaration).body);
}

/** A value without what its type would say: names of properties and parameters. */
function insideOf(value: ts.Node | undefined): ts.Node[] {
  if (!value) return [];
  if (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) return insideOf(value.body);
  if (ts.isParenthesizedExpression(value) || ts.isAsExpression(value) || ts.isSatisfiesExpression(value)) {
    return insideOf(value.expression);
  }
  if (!ts.isObjectLiteralExpression(value)) return [value];
  return value.properties.flatMap((property) => {
    if (ts.isPropertyAssignment(property)) return insideOf(property.initializer);
    return ts.isShorthandPropertyAssignment(property)
      ? []
      : insideOf((property as ts.MethodDeclaration).body);
  });
}

/** Names, and not the words of the language. */
const IDENTIFIER =
  /^(?!(?:any|as|async|await|bigint|boolean|case|catch|class|const|extends|false|for|function|if|implements|in|infer|instanceof|interface|keyof|let|never|new|null|number|object|of|readonly|return|static|string|super|switch|symbol|this|throw|true|try|type|typeof|undefined|unknown|void|while|yield)$)[\p{ID_Start}$_#]/u;

/** Tokens that come and go with the layout and the kind of file. */
const IGNORED_TOKENS = new Set(["", ",", ";", "export", "declare"]);

function addTokens(node: ts.Node, root: ts.SourceFile, tokens: Token[]): void {
  if (ts.isJSDoc(node)) return;
  const children = node.getChildren(root);
  if (children.length > 0) {
    for (const child of children) addTokens(child, root, tokens);
    return;
  }
  const text = ts.isStringLiteral(node) ? JSON.stringify(node.text) : node.getText(root);
  if (!IGNORED_TOKENS.has(text)) tokens.push({ text, start: node.getStart(root), end: node.getEnd() });
}

function commentWords(root: ts.SourceFile): Token[] {
  const words: Token[] = [];
  const seen = new Set<number>();
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of ts.getLeadingCommentRanges(root.text, node.getFullStart()) ?? []) {
      if (seen.has(pos)) continue;
      seen.add(pos);
      for (const match of root.text.slice(pos, end).matchAll(/[\p{L}\p{N}_]+/gu)) {
        const start = pos + match.index;
        words.push({ text: match[0].toLowerCase(), start, end: start + match[0].length });
      }
    }
    for (const child of node.getChildren(root)) visit(child);
  };
  visit(root);
  return words;
}
