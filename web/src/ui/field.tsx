import { createContext, type ComponentChildren, type Ref } from "preact";
import { useContext, useId } from "preact/hooks";

interface FieldIds {
  readonly input: string;
  readonly described: string | undefined;
  readonly invalid: boolean;
}

const Ids = createContext<FieldIds | null>(null);

interface FieldProps {
  readonly label: ComponentChildren;
  readonly help?: ComponentChildren;
  readonly error?: string | null | undefined;
  readonly required?: boolean;
  readonly children: ComponentChildren;
}

/** A labelled input with help and error texts, which screen readers read with it. */
export function Field({ label, help, error, required, children }: FieldProps) {
  const id = useId();
  const parts = [help ? `${id}-help` : "", error ? `${id}-error` : ""].filter((each) => each !== "");
  const ids = { input: id, described: parts.join(" ") || undefined, invalid: Boolean(error) };
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
        {required && <span class="dim"> (required)</span>}
      </label>
      <Ids.Provider value={ids}>{children}</Ids.Provider>
      {help && (
        <p class="field-help" id={`${id}-help`}>
          {help}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** Attributes of an input within a `Field`. */
export function useFieldIds(): { id?: string; "aria-describedby"?: string; "aria-invalid"?: true } {
  const ids = useContext(Ids);
  if (ids === null) return {};
  return {
    id: ids.input,
    ...(ids.described ? { "aria-describedby": ids.described } : {}),
    ...(ids.invalid ? { "aria-invalid": true } : {}),
  };
}

interface TextInputProps {
  readonly value: string;
  readonly onText: (text: string) => void;
  readonly type?: "text" | "password" | "number" | "search" | "datetime-local" | "date" | "time" | "email" | "url";
  readonly placeholder?: string;
  readonly label?: string;
  readonly mono?: boolean;
  readonly disabled?: boolean;
  readonly autoFocus?: boolean;
  readonly autoComplete?: string;
  readonly required?: boolean;
  readonly list?: string;
  readonly step?: string;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly onBlur?: () => void;
  readonly onFocus?: () => void;
  /** It has a list of suggestions: the id of the list, and of the suggestion that is chosen. */
  readonly suggestions?: { readonly list: string; readonly open: boolean; readonly chosen: string | undefined };
  readonly inputRef?: Ref<HTMLInputElement>;
}

export function TextInput(props: TextInputProps) {
  const ids = useFieldIds();
  // preact has separate input types for each `type`; this one covers all
  const kind = { type: props.type ?? "text", ...(props.list ? { list: props.list } : {}) } as { type: "text" };
  return (
    <input
      {...ids}
      {...kind}
      class={`input ${props.mono ? "mono" : ""}`}
      value={props.value}
      placeholder={props.placeholder}
      aria-label={props.label}
      disabled={props.disabled}
      autoFocus={props.autoFocus}
      autocomplete={props.autoComplete ?? "off"}
      required={props.required}
      step={props.step}
      spellcheck={false}
      ref={props.inputRef ?? null}
      onInput={(event) => props.onText(event.currentTarget.value)}
      onKeyDown={(event) => props.onKeyDown?.(event)}
      onBlur={() => props.onBlur?.()}
      onFocus={() => props.onFocus?.()}
      {...suggesting(props.suggestions)}
    />
  );
}

function suggesting(suggestions: TextInputProps["suggestions"]) {
  if (suggestions === undefined) return {};
  const { list, open, chosen } = suggestions;
  return {
    role: "combobox" as const,
    "aria-autocomplete": "list" as const,
    "aria-expanded": open,
    "aria-controls": open ? list : undefined,
    "aria-activedescendant": chosen,
  };
}

export interface Option {
  readonly value: string;
  readonly label: string;
}

interface SelectProps {
  readonly value: string;
  readonly options: readonly (Option | string)[];
  readonly onSelect: (value: string) => void;
  readonly label?: string;
  readonly disabled?: boolean;
}

export function Select({ value, options, onSelect, label, disabled }: SelectProps) {
  const ids = useFieldIds();
  return (
    <select
      {...ids}
      class="input select"
      value={value}
      aria-label={label}
      disabled={disabled}
      onChange={(event) => onSelect(event.currentTarget.value)}
    >
      {options.map((each) => {
        const option = typeof each === "string" ? { value: each, label: each } : each;
        return (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.label}
          </option>
        );
      })}
    </select>
  );
}

interface CheckboxProps {
  readonly checked: boolean;
  readonly onCheck: (checked: boolean) => void;
  readonly label?: string;
  readonly mixed?: boolean;
  readonly disabled?: boolean;
  readonly children?: ComponentChildren;
}

export function Checkbox({ checked, onCheck, label, mixed, disabled, children }: CheckboxProps) {
  const ids = useFieldIds();
  return (
    <label class="checkbox">
      <input
        {...ids}
        type="checkbox"
        checked={checked}
        indeterminate={mixed ?? false}
        disabled={disabled}
        aria-label={label}
        onChange={(event) => onCheck(event.currentTarget.checked)}
      />
      {children !== undefined && <span>{children}</span>}
    </label>
  );
}

interface TextAreaProps {
  readonly value: string;
  readonly onText: (text: string) => void;
  readonly rows?: number;
  readonly mono?: boolean;
  readonly label?: string;
}

export function TextArea({ value, onText, rows, mono, label }: TextAreaProps) {
  const ids = useFieldIds();
  return (
    <textarea
      {...ids}
      class={`input ${mono ? "mono" : ""}`}
      rows={rows ?? 4}
      value={value}
      spellcheck={false}
      aria-label={label}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}
