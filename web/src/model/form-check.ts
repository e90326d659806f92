// Validates fields early, for convenience; the server's validation is authoritative. Patterns are shown and not checked:
// they come from workers, and one of them could keep the page busy for ever.
import { groupThousands } from "./durations";
import { entryOf, type FormValue, textToForm } from "./form-value";
import { checkSyntax } from "./json-text";
import type { Field } from "./schema-form";

/** `path` as `items[0].price`; empty: the whole value. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
  /** The field is still empty: shown only once the user tries to submit. */
  readonly missing?: boolean;
}

const REQUIRED = "is required";

export function validate(field: Field, text: string): FieldError[] {
  const problem = checkSyntax(text);
  return problem ? [{ path: "", message: problem }] : validateForm(field, textToForm(field, text));
}

export function validateForm(field: Field, value: FormValue): FieldError[] {
  const errors: FieldError[] = [];
  check(field, value, "", true, errors);
  return errors;
}

export function memberPath(path: string, key: string): string {
  const name = /^[A-Za-z_]\w*$/.test(key);
  return name ? (path ? `${path}.${key}` : key) : `${path}[${JSON.stringify(key)}]`;
}

function check(field: Field, value: FormValue, path: string, required: boolean, errors: FieldError[]): void {
  const say = (message: string, missing = message === REQUIRED) =>
    errors.push({ path, message, ...(missing ? { missing } : {}) });
  switch (value.kind) {
    case "absent":
      if (required) say(REQUIRED);
      return;
    case "null":
      if (!field.nullable && field.kind !== "null" && field.kind !== "json") say(`must be ${expected(field)}`);
      return;
    case "raw": {
      const problem = checkSyntax(value.text);
      if (problem) say(problem);
      else if (field.kind !== "json") say(`must be ${expected(field)}`);
      return;
    }
    case "union": {
      const variant = field.variants[value.index];
      if (variant) check(variant, value.value, path, required, errors);
      return;
    }
    case "array":
      checkArray(field, value.items, path, errors, say);
      return;
    case "object":
      checkObject(field, value, path, errors);
      return;
    case "text":
      checkText(field, value.text, required, say);
  }
}

function checkArray(
  field: Field,
  items: readonly FormValue[],
  path: string,
  errors: FieldError[],
  say: (message: string, missing?: boolean) => void,
): void {
  const { minItems, maxItems } = field.limits;
  if (minItems !== null && items.length < minItems) say(`needs at least ${minItems}`, true);
  if (maxItems !== null && items.length > maxItems) say(`takes at most ${maxItems}`);
  items.forEach((each, index) => check(field.items, each, `${path}[${index}]`, true, errors));
}

function checkObject(field: Field, value: FormValue & { kind: "object" }, path: string, errors: FieldError[]): void {
  if (field.kind !== "object") {
    const keys = new Set<string>();
    for (const { key, value: each } of value.entries) {
      const place = memberPath(path, key);
      if (keys.has(key)) errors.push({ path: place, message: "this key already exists" });
      keys.add(key);
      check(field.items, each, place, true, errors);
    }
    return;
  }
  for (const { name, field: each, required } of field.properties) {
    check(each, entryOf(value, name), memberPath(path, name), required, errors);
  }
}

function checkText(field: Field, text: string, required: boolean, say: (message: string) => void): void {
  if (field.kind === "string") return checkString(field, text, say);
  if (field.kind !== "number" && field.kind !== "integer") return;
  const written = text.trim();
  if (!written) {
    if (required) say(REQUIRED);
    return;
  }
  const pattern = field.kind === "integer" ? /^-?(0|[1-9]\d*)$/ : /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
  if (!pattern.test(written)) return say(`must be ${expected(field)}`);
  checkRange(field, Number(written), say);
}

function checkRange(field: Field, number: number, say: (message: string) => void): void {
  const { least, above, most, below, multipleOf } = field.limits;
  if (least !== null && number < least) say(`must be at least ${least}`);
  if (above !== null && number <= above) say(`must be more than ${above}`);
  if (most !== null && number > most) say(`must be at most ${most}`);
  if (below !== null && number >= below) say(`must be less than ${below}`);
  if (multipleOf !== null && Number.isInteger(multipleOf) && number % multipleOf !== 0) {
    say(`must be a multiple of ${multipleOf}`);
  }
}

const FORMATS: Record<string, readonly [RegExp, string]> = {
  date: [/^\d{4}-\d\d-\d\d$/, "a date such as 2026-11-16"],
  "date-time": [
    /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/i,
    "a time such as 2026-11-16T14:00:00Z",
  ],
  time: [/^\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/i, "a time of day such as 14:00:00"],
  uuid: [/^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i, "a UUID"],
};

function checkString(field: Field, text: string, say: (message: string) => void): void {
  const { minLength, maxLength } = field.limits;
  const length = [...text].length;
  const format = FORMATS[field.format];
  if (!text && (format || minLength)) return say(REQUIRED);
  if (minLength !== null && length < minLength) say(`needs at least ${minLength} characters`);
  if (maxLength !== null && length > maxLength) say(`takes at most ${groupThousands(maxLength)} characters`);
  if (format && !format[0].test(text)) return say(`must be ${format[1]}`);
  if (field.format === "date" && !isDay(text)) say("is not a valid date");
}

/** Refuses days such as the 30th of February, which Date turns into the 2nd of March. */
function isDay(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

function expected(field: Field): string {
  switch (field.kind) {
    case "choice":
      return field.choices.length === 1
        ? (field.choices[0]?.label ?? "")
        : `one of ${field.choices.map((each) => each.label).join(", ")}`;
    case "integer":
      return "a whole number";
    case "number":
      return "a number";
    case "boolean":
      return "true or false";
    case "string":
      return "text";
    case "array":
      return "a list";
    case "null":
      return "null";
    case "union":
      return `one of ${field.variants.map((each) => each.label).join(", ")}`;
    default:
      return "an object";
  }
}
