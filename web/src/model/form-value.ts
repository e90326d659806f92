// The content of a form: text as it was typed, in the structure of the fields.
import { indented, isJsonError, type JsonNode, nodeText, parseJsonText, scalarText } from "./json-text";
import type { Field } from "./schema-form";

/** `absent`: left out. `raw`: JSON that does not fit its field, or of a field that takes any; kept as it is. */
export type FormValue =
  | { readonly kind: "absent" }
  | { readonly kind: "null" }
  | { readonly kind: "raw"; readonly text: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "object"; readonly entries: readonly FormEntry[] }
  | { readonly kind: "array"; readonly items: readonly FormValue[] }
  | { readonly kind: "union"; readonly index: number; readonly value: FormValue };

export interface FormEntry {
  readonly key: string;
  readonly value: FormValue;
}

export const ABSENT: FormValue = { kind: "absent" };
const NULL: FormValue = { kind: "null" };
/** For schemas that require themselves, or have themselves as an alternative. */
const MOST_DEPTH = 12;

// --- the initial state -----------------------------------------------------------------------------------------------

/** The initial content of a form: defaults, and minimal values for required fields. */
export function initialForm(field: Field, depth = 0): FormValue {
  if (field.fallback !== null) return textToForm(field, field.fallback);
  if (field.nullable) return NULL;
  if (depth > MOST_DEPTH) return ABSENT;
  switch (field.kind) {
    case "object":
      return {
        kind: "object",
        entries: field.properties.map(({ name, field: each, required }) => {
          return { key: name, value: required ? initialForm(each, depth + 1) : optional(each) };
        }),
      };
    case "map":
      return { kind: "object", entries: [] };
    case "array":
      return { kind: "array", items: [] };
    case "union":
      return { kind: "union", index: 0, value: field.variants[0] ? initialForm(field.variants[0], depth + 1) : ABSENT };
    case "choice":
      return { kind: "text", text: field.choices[0]?.text ?? "null" };
    case "boolean":
      return { kind: "text", text: "false" };
    case "null":
      return NULL;
    case "json":
      return { kind: "raw", text: "null" };
    default:
      return { kind: "text", text: "" };
  }
}

/** A default of null means that the field is left out. */
function optional(field: Field): FormValue {
  return field.fallback === null || field.fallback === "null" ? ABSENT : textToForm(field, field.fallback);
}

export function initialText(field: Field): string {
  return formToText(field, initialForm(field));
}

// --- text to form ----------------------------------------------------------------------------------------------------

/** Keeps all of the text: parts that do not fit their field become `raw`. */
export function textToForm(field: Field, text: string): FormValue {
  const node = parseJsonText(text);
  return isJsonError(node) ? { kind: "raw", text } : nodeToForm(field, node, text);
}

function nodeToForm(field: Field, node: JsonNode, text: string, depth = 0): FormValue {
  if (node.kind === "null" && (field.nullable || field.kind === "null")) return NULL;
  const raw: FormValue = { kind: "raw", text: nodeText(node, text) };
  if (field.kind === "union") {
    const index = depth < MOST_DEPTH ? bestVariant(field, node, text) : -1;
    const variant = field.variants[index];
    return variant ? { kind: "union", index, value: nodeToForm(variant, node, text, depth + 1) } : raw;
  }
  if (!hasKind(field, node, text)) return raw;
  const children = node.children ?? [];
  switch (field.kind) {
    case "object":
      return objectToForm(field, children, text);
    case "map":
      return {
        kind: "object",
        entries: children.map((each) => ({ key: each.key ?? "", value: nodeToForm(field.items, each, text) })),
      };
    case "array":
      return { kind: "array", items: children.map((each) => nodeToForm(field.items, each, text)) };
    case "string":
      return { kind: "text", text: scalarText(node, text) };
    case "json":
      return raw;
    default:
      return { kind: "text", text: nodeText(node, text) };
  }
}

/** Fields in the order of the text; then those left out. Keys without a field, or that occur twice, are kept. */
function objectToForm(field: Field, children: readonly JsonNode[], text: string): FormValue {
  const fields = new Map(field.properties.map((each) => [each.name, each.field]));
  const seen = new Set<string>();
  const entries = children.map((each): FormEntry => {
    const key = each.key ?? "";
    const known = seen.has(key) ? undefined : fields.get(key);
    seen.add(key);
    return { key, value: known ? nodeToForm(known, each, text) : { kind: "raw", text: nodeText(each, text) } };
  });
  for (const name of fields.keys()) if (!seen.has(name)) entries.push({ key: name, value: ABSENT });
  return { kind: "object", entries };
}

function hasKind(field: Field, node: JsonNode, text: string): boolean {
  switch (field.kind) {
    case "object":
    case "map":
      return node.kind === "object";
    case "integer":
      return node.kind === "number" && /^-?\d+$/.test(nodeText(node, text));
    case "choice":
      return field.choices.some((each) => sameScalar(each.text, nodeText(node, text)));
    case "json":
      return true;
    default:
      return node.kind === field.kind;
  }
}

function sameScalar(a: string, b: string): boolean {
  if (a === b) return true;
  try {
    return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b)) && !/^-?\d{15,}/.test(a);
  } catch {
    return false;
  }
}

/** The variant that fits the value best; -1 if none fits. */
function bestVariant(field: Field, node: JsonNode, text: string): number {
  let best = -1;
  let most = 0;
  field.variants.forEach((variant, index) => {
    const score = fit(variant, node, text);
    if (score > most) [best, most] = [index, score];
  });
  return best;
}

function fit(field: Field, node: JsonNode, text: string, depth = 0): number {
  if (field.kind === "union") {
    if (depth > 2) return 0;
    return Math.max(0, ...field.variants.map((each) => fit(each, node, text, depth + 1)));
  }
  if (node.kind === "null" && field.nullable) return 1;
  if (!hasKind(field, node, text)) return 0;
  if (field.kind === "json") return 0.5;
  if (field.kind === "choice") return 2;
  if (field.kind !== "object") return 1;
  let score = 1;
  for (const { name, field: each, required } of field.properties) {
    const child = node.children?.find((one) => one.key === name);
    if (!child) {
      if (required) score -= 0.25;
      continue;
    }
    // A different tag rules the variant out.
    if (each.isConst && !hasKind(each, child, text)) return 0;
    score += each.isConst ? 10 : hasKind(each, child, text) || each.kind === "union" ? 1 : 0.1;
  }
  return Math.max(score, 0.1);
}

// --- form to text ----------------------------------------------------------------------------------------------------

/** Indented by two. Invalid numbers are written as they were typed. */
export function formToText(field: Field, value: FormValue): string {
  return indented(written(field, value) ?? "null");
}

/** Null: left out. */
function written(field: Field, value: FormValue): string | null {
  switch (value.kind) {
    case "absent":
      return null;
    case "null":
      return "null";
    case "raw":
      return value.text.trim() || null;
    case "text":
      if (field.kind === "string") return JSON.stringify(value.text);
      return value.text.trim() || null;
    case "union": {
      const variant = field.variants[value.index];
      return variant ? written(variant, value.value) : null;
    }
    case "array":
      return `[${value.items.map((each) => written(field.items, each) ?? "null").join(",")}]`;
    case "object":
      return objectText(field, value.entries);
  }
}

function objectText(field: Field, entries: readonly FormEntry[]): string {
  const fields = field.kind === "object" ? new Map(field.properties.map((each) => [each.name, each.field])) : null;
  const members: string[] = [];
  for (const { key, value } of entries) {
    const each = fields ? fields.get(key) : field.items;
    const text = value.kind === "raw" || !each ? rawText(value) : written(each, value);
    if (text !== null) members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join(",")}}`;
}

function rawText(value: FormValue): string | null {
  return value.kind === "raw" ? value.text.trim() || null : value.kind === "null" ? "null" : null;
}

// --- changes ---------------------------------------------------------------------------------------------------------

/** Returns the object with a changed field; changes the first entry of the key, or adds one. */
export function withEntry(form: FormValue, key: string, value: FormValue): FormValue {
  const entries = form.kind === "object" ? form.entries : [];
  const at = entries.findIndex((each) => each.key === key);
  if (at < 0) return { kind: "object", entries: [...entries, { key, value }] };
  return { kind: "object", entries: entries.map((each, index) => (index === at ? { key, value } : each)) };
}

export function entryOf(form: FormValue, key: string): FormValue {
  return (form.kind === "object" && form.entries.find((each) => each.key === key)?.value) || ABSENT;
}

/** Returns the array with a changed item, or (null) without it. */
export function withItem(form: FormValue, index: number, value: FormValue | null): FormValue {
  const items = form.kind === "array" ? [...form.items] : [];
  items.splice(index, 1, ...(value ? [value] : []));
  return { kind: "array", items };
}
