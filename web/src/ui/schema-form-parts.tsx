import { useRef } from "preact/hooks";
import { memberPath } from "../model/form-check";
import { entryOf, type FormValue, initialForm, withEntry, withItem } from "../model/schema-form";
import { Button } from "./button";
import { Field, TextInput } from "./field";
import { JsonEditor } from "./json-editor";
import { FieldPart, type PartProps } from "./schema-form";
import { Tabs } from "./tabs";

type Of<K extends FormValue["kind"]> = PartProps & { readonly value: Extract<FormValue, { kind: K }> };

/** The fields of an object, then its other keys. */
export function ObjectPart(props: Of<"object"> & { readonly without?: string | undefined }) {
  const { field, value, path, errors, onChange } = props;
  return (
    <>
      {field.properties.filter((each) => each.name !== props.without).map((each) => (
        <FieldPart
          key={each.name}
          field={each.field}
          value={entryOf(value, each.name)}
          path={memberPath(path, each.name)}
          label={each.name}
          required={each.required}
          errors={errors}
          onChange={(changed) => onChange(withEntry(value, each.name, changed))}
        />
      ))}
      <OtherEntries {...props} />
    </>
  );
}

/** Keys without a field, and duplicate keys. */
function OtherEntries({ field, value, onChange }: Of<"object">) {
  const names = new Set(field.properties.map((each) => each.name));
  const seen = new Set<string>();
  return (
    <>
      {value.entries.map(({ key, value: each }, index) => {
        const other = !names.has(key) || seen.has(key);
        seen.add(key);
        if (!other || each.kind !== "raw") return null;
        const change = (entries: readonly { key: string; value: FormValue }[]): void =>
          onChange({ kind: "object", entries: value.entries.flatMap((one, at) => (at === index ? entries : [one])) });
        return (
          <Field key={`${index}`} label={<code>{key}</code>} help="The schema has no field with this name.">
            <div class="row schema-line">
              <JsonEditor
                text={each.text}
                rows={2}
                onText={(text) => change([{ key, value: { kind: "raw", text } }])}
              />
              <Button kind="quiet" icon="trash" label={`Remove ${key}`} title="Remove" onClick={() => change([])} />
            </div>
          </Field>
        );
      })}
    </>
  );
}

export function ListPart({ field, value, path, label, errors, onChange }: Of<"array">) {
  return (
    <div class="stack">
      {value.items.map((item, index) => (
        <FieldPart
          key={index}
          field={field.items}
          value={item}
          path={`${path}[${index}]`}
          label={`${label}[${index}]`}
          required
          errors={errors}
          onChange={(changed) => onChange(withItem(value, index, changed))}
          onRemove={() => onChange(withItem(value, index, null))}
        />
      ))}
      <p>
        <Button
          local
          icon="plus"
          label={`Add to ${label}`}
          onClick={() => onChange(withItem(value, value.items.length, initialForm(field.items)))}
        >
          Add
        </Button>
      </p>
    </div>
  );
}

export function MapPart({ field, value, path, label, errors, onChange }: Of<"object">) {
  const change = (index: number, entries: readonly { key: string; value: FormValue }[]): void => {
    onChange({ kind: "object", entries: value.entries.flatMap((each, at) => (at === index ? entries : [each])) });
  };
  const add = (): void => {
    onChange({ kind: "object", entries: [...value.entries, { key: "", value: initialForm(field.items) }] });
  };
  return (
    <div class="stack">
      {value.entries.map((entry, index) => (
        <div key={index} class="schema-entry">
          <Field label="key">
            <TextInput value={entry.key} onText={(key) => change(index, [{ ...entry, key }])} mono />
          </Field>
          <FieldPart
            field={field.items}
            value={entry.value}
            path={memberPath(path, entry.key)}
            label="value"
            required
            errors={errors}
            onChange={(changed) => change(index, [{ ...entry, value: changed }])}
            onRemove={() => change(index, [])}
          />
        </div>
      ))}
      <p>
        <Button local icon="plus" label={`Add to ${label}`} onClick={add}>
          Add
        </Button>
      </p>
    </div>
  );
}

export function UnionPart(props: Of<"union">) {
  const { field, value, path, label, errors, onChange } = props;
  // what was typed under another tab is restored on return
  const typed = useRef(new Map<number, FormValue>());
  const variant = field.variants[value.index];
  if (!variant) return null;
  const select = (index: number): void => {
    const to = field.variants[index];
    if (!to || index === value.index) return;
    typed.current.set(value.index, value.value);
    onChange({ kind: "union", index, value: typed.current.get(index) ?? initialForm(to) });
  };
  const tabs = field.variants.map((each, index) => ({ id: String(index), label: each.label }));
  const inner = { field: variant, value: value.value, path, errors };
  const set = (changed: FormValue): void => onChange({ kind: "union", index: value.index, value: changed });
  return (
    <Tabs tabs={tabs} active={String(value.index)} onSelect={(id) => select(Number(id))} label={`Kind of ${label}`}>
      {inner.value.kind === "object" && variant.kind === "object" ? (
        <ObjectPart {...inner} value={inner.value} label={label} required onChange={set} />
      ) : (
        <FieldPart {...inner} label={variant.label} required onChange={set} />
      )}
    </Tabs>
  );
}
