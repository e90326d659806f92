import type { FieldError } from "../model/schema-form";
import { ABSENT, type Field as SchemaField, type FormValue, initialForm } from "../model/schema-form";
import { Button } from "./button";
import { Checkbox, Field, Select, TextArea, TextInput } from "./field";
import { JsonEditor } from "./json-editor";
import { ListPart, MapPart, ObjectPart, UnionPart } from "./schema-form-parts";

interface SchemaFormProps {
  readonly field: SchemaField;
  readonly value: FormValue;
  /** The errors to show, at their paths. */
  readonly errors: readonly FieldError[];
  readonly onChange: (value: FormValue) => void;
  /** The label of a value that is not an object. */
  readonly label?: string;
  /** A field of the object that is shown elsewhere. */
  readonly without?: string;
}

/** A form from a JSON Schema. Typed text stays as it is. */
export function SchemaForm({ field, value, errors, onChange, label = "Value", without }: SchemaFormProps) {
  const byPath = new Map(errors.map((each) => [each.path, each.message]));
  const part = { field, value, path: "", label, required: true, errors: byPath, onChange };
  const fields = field.kind === "object" && value.kind === "object";
  return <div class="schema-form">{fields ? <ObjectPart {...part} value={value} without={without} /> : <FieldPart {...part} />}</div>;
}

export interface PartProps {
  readonly field: SchemaField;
  readonly value: FormValue;
  readonly path: string;
  readonly label: string;
  readonly required: boolean;
  readonly errors: ReadonlyMap<string, string>;
  readonly onChange: (value: FormValue) => void;
  /** Removes an item from its list. */
  readonly onRemove?: () => void;
}

/** A field with its value. */
export function FieldPart(props: PartProps) {
  const { field, value, path, label } = props;
  if (value.kind === "raw" && field.kind !== "json") return <Misfit {...props} text={value.text} />;
  if (field.kind === "object" || field.kind === "map" || field.kind === "array" || field.kind === "union") {
    return <Nested {...props} />;
  }
  return (
    <Field
      label={<code>{label}</code>}
      help={helpOf(field)}
      error={props.errors.get(path)}
      required={props.required && field.kind !== "boolean"}
    >
      <div class="row schema-line">
        <Scalar {...props} />
        <Clear {...props} />
      </div>
    </Field>
  );
}

/** A part with nested parts: in a box with its name. */
function Nested(props: PartProps) {
  const { field, value, label, path, required, onChange } = props;
  const error = props.errors.get(path);
  const filled = value.kind === "object" || value.kind === "array" || value.kind === "union";
  return (
    <fieldset class="schema-group">
      <legend>
        <code>{label}</code>
        {required && <span class="dim"> (required)</span>}
      </legend>
      {field.description && <p class="field-help">{field.description}</p>}
      {filled ? (
        <>
          {value.kind === "union" && <UnionPart {...props} value={value} />}
          {value.kind === "array" && <ListPart {...props} value={value} />}
          {value.kind === "object" && field.kind === "object" && <ObjectPart {...props} value={value} />}
          {value.kind === "object" && field.kind === "map" && <MapPart {...props} value={value} />}
        </>
      ) : (
        <p class="row">
          <span class="dim">{value.kind === "null" ? "null" : "not set"}</span>
          <Button local icon="plus" label={`Set ${label}`} onClick={() => onChange(filledForm(field))}>
            Set
          </Button>
        </p>
      )}
      {error && <p class="field-error">{error}</p>}
      {!isJustEmpty(field, value) && (
        <div class="row schema-clear">
          <Clear {...props} words />
        </div>
      )}
    </fieldset>
  );
}

/** An empty list or map, which is equivalent to leaving it out: there is nothing to clear. */
function isJustEmpty(field: SchemaField, value: FormValue): boolean {
  if (value.kind === "array") return value.items.length === 0 && field.fallback === "[]";
  return field.kind === "map" && value.kind === "object" && value.entries.length === 0 && field.fallback === "{}";
}

/** The initial value of an optional or nullable field when the user adds it. */
function filledForm(field: SchemaField): FormValue {
  if (field.kind === "object") {
    const entries = field.properties.map(({ name, field: each, required }) => {
      return { key: name, value: required ? initialForm(each) : ABSENT };
    });
    return { kind: "object", entries };
  }
  if (field.kind === "union") {
    const first = field.variants[0];
    return { kind: "union", index: 0, value: first ? initialForm(first) : ABSENT };
  }
  return field.kind === "array" ? { kind: "array", items: [] } : { kind: "object", entries: [] };
}

/** Clears a value: left out if optional, otherwise null; an item is removed from its list. `words`: show a text, where
 * no field beside the icon explains it. */
function Clear({ field, value, label, required, onChange, onRemove, words = false }: PartProps & { words?: boolean }) {
  if (onRemove) {
    return (
      <Button kind="quiet" icon="trash" label={`Remove ${label}`} title="Remove" onClick={onRemove}>
        {words ? "Remove" : undefined}
      </Button>
    );
  }
  const nothing: FormValue | null = !required ? ABSENT : field.nullable ? { kind: "null" } : null;
  const chosen = field.kind === "choice" || field.kind === "boolean";
  if (nothing === null || value.kind === nothing.kind || chosen) return null;
  return (
    <Button kind="quiet" icon="cross" label={`Clear ${label}`} title="Clear" onClick={() => onChange(nothing)}>
      {words ? "Clear" : undefined}
    </Button>
  );
}

/** JSON that does not match the field: shown as it is, so that nothing is lost. */
function Misfit(props: PartProps & { readonly text: string }) {
  const { field, label, text, onChange, path } = props;
  return (
    <Field label={<code>{label}</code>} help={helpOf(field)} error={props.errors.get(path)} required={props.required}>
      <JsonEditor text={text} onText={(typed) => onChange({ kind: "raw", text: typed })} rows={2} />
      <p class="row">
        <Button local label={`Reset ${label}`} onClick={() => onChange(initialForm(field))}>
          Reset
        </Button>
        <Clear {...props} />
      </p>
    </Field>
  );
}

function Scalar({ field, value, label, required, onChange }: PartProps) {
  const text = value.kind === "text" || value.kind === "raw" ? value.text : "";
  const setText = (typed: string): void => onChange({ kind: "text", text: typed });
  const placeholder = value.kind === "null" ? "null" : required ? "" : "not set";
  switch (field.kind) {
    case "null":
      return <code>null</code>;
    case "json":
      return <JsonEditor text={text} onText={(typed) => onChange({ kind: "raw", text: typed })} rows={2} />;
    case "boolean":
    case "choice":
      return <Chosen {...{ field, value, label, required, onChange }} />;
    case "string":
      // a single-line input would lose line breaks
      if (text.includes("\n")) {
        return <TextArea value={text} onText={setText} rows={Math.min(12, text.split("\n").length)} />;
      }
      if (field.format === "date" && /^(\d{4}-\d\d-\d\d)?$/.test(text)) {
        return <TextInput type="date" value={text} onText={setText} />;
      }
      return <TextInput value={text} onText={setText} placeholder={placeholder} mono={field.format !== ""} />;
    default:
      return <TextInput value={text} onText={setText} placeholder={placeholder} mono />;
  }
}

type ChosenProps = Pick<PartProps, "field" | "value" | "label" | "required" | "onChange">;

/** One of a few values; a boolean is a checkbox. */
function Chosen({ field, value, label, required, onChange }: ChosenProps) {
  const text = value.kind === "text" ? value.text : "";
  if (field.kind === "boolean" && value.kind === "text" && !field.nullable) {
    const check = (on: boolean): void => onChange({ kind: "text", text: String(on) });
    return (
      <Checkbox checked={text === "true"} onCheck={check}>
        {text === "true" ? "true" : "false"}
      </Checkbox>
    );
  }
  if (field.isConst && (required || value.kind === "text")) return <code>{field.choices[0]?.label}</code>;
  const known =
    field.kind === "boolean"
      ? ["true", "false"].map((each) => ({ value: each, label: each }))
      : field.choices.map((each) => ({ value: each.text, label: each.label }));
  const options = [
    ...(required ? [] : [{ value: "absent", label: "not set" }]),
    ...(field.nullable ? [{ value: "null", label: "null" }] : []),
    ...known,
  ];
  const shown = value.kind === "text" ? (known.find((each) => same(each.value, text))?.value ?? text) : value.kind;
  const select = (chosen: string): void => {
    if (chosen === "absent") onChange(ABSENT);
    else onChange(chosen === "null" && field.nullable ? { kind: "null" } : { kind: "text", text: chosen });
  };
  return <Select value={shown} options={options} onSelect={select} {...(label === "" ? { label: "Value" } : {})} />;
}

/** Compares as JSON: `1.0` is not `1`, but whitespace does not matter. */
function same(a: string, b: string): boolean {
  return a.replace(/\s+/g, "") === b.replace(/\s+/g, "");
}

function helpOf(field: SchemaField): string {
  const { least, above, most, below, minLength, maxLength, pattern } = field.limits;
  const parts = [
    field.description,
    field.kind === "integer" ? "whole number" : field.kind === "number" ? "number" : "",
    field.format && field.format !== "date" ? field.format : "",
    least !== null ? `at least ${least}` : above !== null ? `more than ${above}` : "",
    most !== null ? `at most ${most}` : below !== null ? `less than ${below}` : "",
    minLength !== null && minLength > 1 ? `at least ${minLength} characters` : "",
    maxLength !== null ? `at most ${maxLength} characters` : "",
    pattern ? `matches ${pattern}` : "",
    field.fallback !== null && field.fallback !== "null" && field.fallback !== '""' && !field.isConst ? `default ${field.fallback}` : "",
  ];
  return parts.filter((part) => part !== "").join(" · ");
}
