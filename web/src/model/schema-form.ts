// Builds a form from a JSON Schema. Values stay text throughout, so that numbers are sent as they were typed.
import { isJsonError, parseJsonText, scalarText } from "./json-text";
import { SchemaNode } from "./schema-nodes";

export { type FieldError, validate, validateForm } from "./form-check";
export * from "./form-value";

/** `map`: an object with free keys. `json`: anything, edited as JSON. */
export type FieldKind =
  | "string"
  | "number"
  | "integer"
  | "boolean"
  | "null"
  | "choice"
  | "object"
  | "map"
  | "array"
  | "union"
  | "json";

export interface Choice {
  readonly label: string;
  /** JSON text. */
  readonly text: string;
}

export interface Property {
  readonly name: string;
  readonly field: Field;
  readonly required: boolean;
}

export interface Limits {
  readonly least: number | null;
  readonly above: number | null;
  readonly most: number | null;
  readonly below: number | null;
  readonly multipleOf: number | null;
  readonly minLength: number | null;
  readonly maxLength: number | null;
  readonly pattern: string;
  readonly minItems: number | null;
  readonly maxItems: number | null;
}

const MOST_DEPTH = 16;

/** A field of the form. Its parts are created on demand: a schema may contain itself. */
export class Field {
  readonly kind: FieldKind;
  readonly title: string;
  readonly description: string;
  /** May also be null. */
  readonly nullable: boolean;
  /** JSON text of the default; null: none. */
  readonly fallback: string | null;
  readonly format: string;
  private readonly schema: SchemaNode;
  private readonly alternatives: readonly SchemaNode[];
  private readonly made = new Map<string, unknown>();

  constructor(schema: SchemaNode, depth = 0) {
    const choices = schema.schemas("anyOf").length ? schema.schemas("anyOf") : schema.schemas("oneOf");
    const types = schema.words("type");
    const isNull = (each: SchemaNode) => each.words("type").join() === "null" || each.raw("const") === "null";
    const rest = choices.filter((each) => !isNull(each));
    this.nullable = choices.length > rest.length || (types.length > 1 && types.includes("null"));
    this.title = schema.word("title");
    this.fallback = schema.raw("default");
    // A schema may list itself as an alternative.
    const only = rest.length === 1 && depth < MOST_DEPTH ? rest[0] : undefined;
    const inner = only ? new Field(only, depth + 1) : null;
    this.description = schema.word("description") || (inner?.description ?? "");
    // A single alternative beside null is used directly.
    this.schema = inner?.schema ?? schema;
    this.alternatives = inner ? inner.alternatives : rest.length ? rest : severalTypes(types, schema);
    this.kind = inner ? inner.kind : this.alternatives.length ? "union" : kindOf(schema, types);
    this.format = this.schema.word("format");
  }

  /** For a choice. */
  get choices(): readonly Choice[] {
    return this.once("choices", () => {
      const raws = this.schema.raw("const") === null ? this.schema.raws("enum") : [this.schema.raw("const") ?? ""];
      return raws.map((text) => ({ text, label: labelOf(text) }));
    });
  }

  /** For an object. */
  get properties(): readonly Property[] {
    return this.once("properties", () => {
      const required = this.schema.required();
      return this.schema.properties().map(([name, schema]) => {
        return { name, field: new Field(schema), required: required.has(name) };
      });
    });
  }

  /** For an array; for a map, the field of its values. */
  get items(): Field {
    return this.once("items", () => {
      const keyword = this.kind === "map" ? "additionalProperties" : "items";
      return new Field(this.schema.schema(keyword) ?? SchemaNode.of("{}"));
    });
  }

  /** For a union. */
  get variants(): readonly Field[] {
    return this.once("variants", () => this.alternatives.map((each) => new Field(each)));
  }

  get limits(): Limits {
    return this.once("limits", () => {
      const { schema } = this;
      return {
        least: schema.figure("minimum"),
        above: schema.figure("exclusiveMinimum"),
        most: schema.figure("maximum"),
        below: schema.figure("exclusiveMaximum"),
        multipleOf: schema.figure("multipleOf"),
        minLength: schema.figure("minLength"),
        maxLength: schema.figure("maxLength"),
        pattern: schema.word("pattern"),
        minItems: schema.figure("minItems"),
        maxItems: schema.figure("maxItems"),
      };
    });
  }

  /** Whether only one value is allowed. */
  get isConst(): boolean {
    return this.kind === "choice" && this.choices.length === 1 && !this.nullable;
  }

  /** The text of its tab or button. */
  get label(): string {
    if (this.title) return this.title;
    if (this.kind === "choice") return this.choices.map((each) => each.label).join(" | ");
    const fixed = this.kind === "object" ? this.properties.find((each) => each.field.isConst) : undefined;
    return fixed?.field.choices[0]?.label ?? this.kind;
  }

  private once<T>(name: string, make: () => T): T {
    if (!this.made.has(name)) this.made.set(name, make());
    return this.made.get(name) as T;
  }
}

/** The form of a schema, given as text. Without a valid schema: any value, as JSON. */
export function fieldsOf(schema: string): Field {
  return new Field(SchemaNode.of(schema));
}

function kindOf(schema: SchemaNode, types: readonly string[]): FieldKind {
  if (schema.raw("const") !== null || schema.raws("enum").length) return "choice";
  const type = types.find((each) => each !== "null") ?? types[0] ?? (schema.properties().length ? "object" : "");
  if (type === "object") return schema.properties().length ? "object" : "map";
  const plain = ["string", "number", "integer", "boolean", "null"] as const;
  // Tuples are rare, so they are edited as JSON.
  if (type === "array") return schema.raw("prefixItems") ? "json" : "array";
  return plain.find((each) => each === type) ?? "json";
}

/** `{"type": ["string", "integer"]}` is a union of both. */
function severalTypes(types: readonly string[], schema: SchemaNode): SchemaNode[] {
  const rest = types.filter((type) => type !== "null");
  if (rest.length < 2 || schema.raws("enum").length) return [];
  return rest.map((type) => SchemaNode.of(JSON.stringify({ type })));
}

function labelOf(text: string): string {
  const node = parseJsonText(text);
  return isJsonError(node) ? text : scalarText(node, text);
}
