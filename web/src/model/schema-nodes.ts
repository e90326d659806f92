// Reads a JSON Schema as text: follows references, and keeps the digits of defaults and choices.
import { isJsonError, type JsonNode, nodeText, parseJsonText, scalarText } from "./json-text";

const MOST_PARTS = 32;

/** A schema merged with those it references; for each keyword the nearest one applies. */
export class SchemaNode {
  private constructor(
    private readonly root: JsonNode,
    private readonly text: string,
    private readonly parts: readonly JsonNode[],
  ) {}

  /** A text that is not JSON becomes an empty schema. */
  static of(text: string): SchemaNode {
    const node = parseJsonText(text);
    const root = isJsonError(node) ? (parseJsonText("{}") as JsonNode) : node;
    return new SchemaNode(root, isJsonError(node) ? "{}" : text, []).at(root);
  }

  private at(node: JsonNode): SchemaNode {
    const parts: JsonNode[] = [];
    const waiting = [node];
    for (let part = waiting.shift(); part && parts.length < MOST_PARTS; part = waiting.shift()) {
      if (parts.includes(part)) continue;
      parts.push(part);
      const reference = member(part, "$ref");
      const target = reference && this.target(scalarText(reference, this.text));
      if (target) waiting.push(target);
      waiting.push(...(member(part, "allOf")?.children ?? []));
    }
    return new SchemaNode(this.root, this.text, parts);
  }

  /** `#/$defs/Order`; references to other documents are ignored. */
  private target(reference: string): JsonNode | null {
    if (reference !== "#" && !reference.startsWith("#/")) return null;
    let node: JsonNode | undefined = this.root;
    for (const step of reference.split("/").slice(1)) {
      const key = decodeURIComponent(step).replace(/~1/g, "/").replace(/~0/g, "~");
      node = node && member(node, key);
    }
    return node ?? null;
  }

  private find(keyword: string): JsonNode | undefined {
    for (const part of this.parts) {
      const found = member(part, keyword);
      if (found) return found;
    }
    return undefined;
  }

  /** The exact text of a keyword; null: absent. */
  raw(keyword: string): string | null {
    const found = this.find(keyword);
    return found ? nodeText(found, this.text) : null;
  }

  word(keyword: string): string {
    const found = this.find(keyword);
    return found?.kind === "string" ? scalarText(found, this.text) : "";
  }

  figure(keyword: string): number | null {
    const found = this.find(keyword);
    return found?.kind === "number" ? Number(nodeText(found, this.text)) : null;
  }

  /** A list of strings; a single string is a list of one. */
  words(keyword: string): string[] {
    const found = this.find(keyword);
    if (found?.kind === "string") return [scalarText(found, this.text)];
    return (found?.children ?? []).filter((each) => each.kind === "string").map((each) => scalarText(each, this.text));
  }

  raws(keyword: string): string[] {
    const found = this.find(keyword);
    return found?.kind === "array" ? (found.children ?? []).map((each) => nodeText(each, this.text)) : [];
  }

  schema(keyword: string): SchemaNode | null {
    const found = this.find(keyword);
    return found?.kind === "object" ? this.at(found) : null;
  }

  schemas(keyword: string): SchemaNode[] {
    const found = this.find(keyword);
    return found?.kind === "array" ? (found.children ?? []).map((each) => this.at(each)) : [];
  }

  /** The properties of all parts, in order: `allOf` combines them. */
  properties(): [string, SchemaNode][] {
    const found = new Map<string, SchemaNode>();
    for (const part of this.parts) {
      for (const each of member(part, "properties")?.children ?? []) {
        if (each.key !== undefined && !found.has(each.key)) found.set(each.key, this.at(each));
      }
    }
    return [...found];
  }

  required(): Set<string> {
    const names = this.parts.flatMap((part) => member(part, "required")?.children ?? []);
    return new Set(names.map((each) => scalarText(each, this.text)));
  }
}

function member(node: JsonNode, key: string): JsonNode | undefined {
  return node.kind === "object" ? node.children?.find((each) => each.key === key) : undefined;
}
