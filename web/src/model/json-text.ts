// JSON as text: keeps digits, key order and duplicate keys, which `JSON.parse` loses.

export { joinEnvelope, RawJson, splitEnvelope } from "./envelope";

export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** A value in a text, from `start` to `end`. */
export class JsonNode {
  end = 0;
  /** Members of an object or items of an array, in order. */
  children: JsonNode[] | undefined;

  constructor(
    readonly kind: JsonKind,
    readonly start: number,
    readonly parent: JsonNode | null,
    /** The decoded key of an object member. */
    readonly key: string | undefined,
    /** Its index in its parent. */
    readonly index: number,
  ) {
    if (kind === "object" || kind === "array") this.children = [];
  }

  get path(): string {
    return pathOf(this);
  }
}

export interface JsonError {
  readonly error: string;
  readonly offset: number;
}

const SPACE = /[ \t\n\r]*/y;
// Unrolled: an alternation per character would overflow the regex engine's stack on a long string.
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

function match(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

class Refused extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** Parses a text. A loop, not a recursion: values may be nested arbitrarily deep. */
export function parseJsonText(text: string): JsonNode | JsonError {
  try {
    return parse(text);
  } catch (problem) {
    if (problem instanceof Refused) return { error: problem.message, offset: problem.offset };
    throw problem;
  }
}

export function isJsonError(found: JsonNode | JsonError): found is JsonError {
  return "error" in found;
}

function parse(text: string): JsonNode {
  let at = match(SPACE, text, 0);
  let open: JsonNode | null = null;
  for (;;) {
    let key: string | undefined;
    if (open?.kind === "object") [key, at] = readKey(text, at);
    const node = begin(text, at, open, key);
    open?.children?.push(node);
    if (node.children) {
      at = match(SPACE, text, at + 1);
      if (text[at] !== closing(node)) {
        open = node;
        continue;
      }
      node.end = at + 1;
    }
    at = match(SPACE, text, node.end);
    while (open) {
      if (text[at] === ",") break;
      if (text[at] !== closing(open)) throw new Refused(`expected , or ${closing(open)}${found(text, at)}`, at);
      open.end = at + 1;
      at = match(SPACE, text, open.end);
      if (!open.parent) return ended(text, at, open);
      open = open.parent;
    }
    if (!open) return ended(text, at, node);
    at = match(SPACE, text, at + 1);
  }
}

function ended(text: string, at: number, root: JsonNode): JsonNode {
  if (at < text.length) throw new Refused(`expected the end${found(text, at)}`, at);
  return root;
}

function closing(node: JsonNode): string {
  return node.kind === "object" ? "}" : "]";
}

function readKey(text: string, at: number): [string, number] {
  const end = match(STRING, text, at);
  if (end < 0) throw new Refused(`expected a key in double quotes${found(text, at)}`, at);
  const colon = match(SPACE, text, end);
  if (text[colon] !== ":") throw new Refused(`expected : after the key${found(text, colon)}`, colon);
  return [decode(text, at, end), match(SPACE, text, colon + 1)];
}

function begin(text: string, at: number, parent: JsonNode | null, key: string | undefined): JsonNode {
  const first = text[at] ?? "";
  const index = parent?.children?.length ?? 0;
  if (first === "{") return new JsonNode("object", at, parent, key, index);
  if (first === "[") return new JsonNode("array", at, parent, key, index);
  const kind = first === '"' ? "string" : /[-\d]/.test(first) ? "number" : first === "n" ? "null" : "boolean";
  const end = match(kind === "string" ? STRING : kind === "number" ? NUMBER : WORD, text, at);
  if (end < 0) {
    const what = kind === "string" ? "this string is not closed, or has a character that must be escaped" : "";
    throw new Refused(what || `expected a value${found(text, at)}`, at);
  }
  const node = new JsonNode(kind, at, parent, key, index);
  node.end = end;
  return node;
}

function found(text: string, at: number): string {
  return at < text.length ? `, not ${text[at]}` : ", but the text ends";
}

function decode(text: string, start: number, end: number): string {
  const body = text.slice(start + 1, end - 1);
  return body.includes("\\") ? (JSON.parse(`"${body}"`) as string) : body;
}

/** The exact text of the value. */
export function nodeText(node: JsonNode, text: string): string {
  return text.slice(node.start, node.end);
}

/** The decoded string; for other values their text. */
export function scalarText(node: JsonNode, text: string): string {
  return node.kind === "string" ? decode(text, node.start, node.end) : nodeText(node, text);
}

/** `order.items[2]["unit price"]`; empty for the root. */
export function pathOf(node: JsonNode): string {
  const parts: string[] = [];
  for (let at = node; at.parent; at = at.parent) {
    if (at.key === undefined) parts.push(`[${at.index}]`);
    else parts.push(/^[A-Za-z_]\w*$/.test(at.key) ? `.${at.key}` : `[${JSON.stringify(at.key)}]`);
  }
  return parts.reverse().join("").replace(/^\./, "");
}

/** Values whose key or text contains the needle, in text order; case-insensitive. */
export function findInJson(node: JsonNode, text: string, needle: string): JsonNode[] {
  const wanted = needle.toLowerCase();
  if (!wanted) return [];
  const hits: JsonNode[] = [];
  for (const each of walk(node)) {
    const inKey = each.key?.toLowerCase().includes(wanted);
    if (inKey || (!each.children && scalarText(each, text).toLowerCase().includes(wanted))) hits.push(each);
  }
  return hits;
}

/** The node and all its descendants, in text order. */
export function* walk(node: JsonNode): Generator<JsonNode> {
  const waiting = [node];
  for (let each = waiting.pop(); each; each = waiting.pop()) {
    yield each;
    const children = each.children ?? [];
    for (let index = children.length - 1; index >= 0; index -= 1) waiting.push(children[index] as JsonNode);
  }
}

/** Null if it is JSON, otherwise the error and its position: `line 3, column 7: expected a value, not }`. */
export function checkSyntax(text: string): string | null {
  if (!text.trim()) return "it is empty. Enter JSON, such as null or {}";
  const parsed = parseJsonText(text);
  if (!isJsonError(parsed)) return null;
  const before = text.slice(0, parsed.offset).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${parsed.error}`;
}

/** Indented by two. Tokens stay unchanged; text that is not JSON is returned as it is. */
export function pretty(text: string): string {
  return isJsonError(parseJsonText(text)) ? text : indented(text);
}

/** Like `pretty`, but tolerates invalid scalars such as `12x`. Returns the text unchanged if anything would be lost. */
export function indented(text: string): string {
  const token = /[ \t\n\r]+|"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
  const parts: string[] = [];
  let depth = 0;
  let last = "";
  let seen = 0;
  for (const [piece] of text.matchAll(token)) {
    seen += piece.length;
    if (/^\s/.test(piece)) continue;
    const closes = piece === "}" || piece === "]";
    if (closes) depth -= 1;
    const opened = last === "{" || last === "[";
    if ((opened && !closes) || last === "," || (closes && !opened)) parts.push("\n", "  ".repeat(Math.max(depth, 0)));
    else if (last === ":") parts.push(" ");
    parts.push(piece);
    if (piece === "{" || piece === "[") depth += 1;
    last = piece;
  }
  return seen === text.length && depth === 0 ? parts.join("") : text;
}
