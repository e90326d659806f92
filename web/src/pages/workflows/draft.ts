// The draft of a run to start. The text and the form are one state: a change of one changes both.
import { RawJson, checkSyntax } from "../../model/json-text";
import {
  type Field,
  type FieldError,
  type FormValue,
  formToText,
  initialForm,
  textToForm,
  validateForm,
} from "../../model/schema-form";
import type { StartSnippet } from "../../model/snippets";

export interface Options {
  readonly workflowId: string;
  readonly labels: readonly (readonly [string, string])[];
  readonly delay: string;
  readonly priority: string;
  readonly concurrencyKey: string;
  readonly onConflict: string;
}

export const NO_OPTIONS: Options = {
  workflowId: "",
  labels: [],
  delay: "",
  priority: "",
  concurrencyKey: "",
  onConflict: "existing",
};

export interface Draft {
  /** The text to send, to the byte. */
  readonly text: string;
  readonly form: FormValue;
  /** The JSON is incomplete: the form still shows the previous value. */
  readonly behind: boolean;
}

export function firstDraft(field: Field): Draft {
  const form = initialForm(field);
  return { text: formToText(field, form), form, behind: false };
}

/** After an edit of the JSON: updates the form, unless the text is not valid JSON yet. */
export function withText(field: Field, draft: Draft, text: string): Draft {
  const behind = checkSyntax(text) !== null;
  return { text, form: behind ? draft.form : textToForm(field, text), behind };
}

/** After an edit of the form: rewrites the text. */
export function withForm(field: Field, form: FormValue): Draft {
  return { text: formToText(field, form), form, behind: false };
}

/** The errors of the draft. Empty required fields are reported only after the user `asked` to start. */
export function errorsOf(field: Field, draft: Draft, asked: boolean): FieldError[] {
  return validateForm(field, draft.form).filter((each) => asked || !each.missing);
}

/** The server's error, at the field that it names: `input.items[0].price: expected ...`. */
export function serverError(problem: { readonly field: string | null; readonly detail: string }): FieldError | null {
  if (!problem.field?.startsWith("input")) return null;
  const found = /\binput((?:\.[^\s.:[]+|\[[^\]]*\])*): (.+)/.exec(problem.detail);
  const message = (found?.[2] ?? "").replace(/\. The input does not fit.*/s, "");
  return found ? { path: (found[1] ?? "").replace(/^\./, ""), message } : null;
}

export function bodyOf(workflow: string, version: string, draft: Draft, options: Options): Record<string, unknown> {
  const { workflowId, labels, delay, priority, concurrencyKey, onConflict } = options;
  return {
    workflow,
    input: new RawJson(draft.text.trim() || "null"),
    ...(version ? { version } : {}),
    ...(workflowId.trim() ? { workflow_id: workflowId.trim() } : {}),
    ...(labels.length ? { labels: Object.fromEntries(labels.filter(([key]) => key !== "")) } : {}),
    ...(delay.trim() ? { delay: delay.trim() } : {}),
    ...(priority.trim() ? { priority: new RawJson(priority.trim()) } : {}),
    ...(concurrencyKey.trim() ? { concurrency_key: concurrencyKey.trim() } : {}),
    ...(onConflict !== "existing" ? { on_conflict: onConflict } : {}),
  };
}

export function snippetOf(workflow: string, version: string, draft: Draft, options: Options): StartSnippet {
  return {
    does: "start",
    workflow,
    input: draft.text,
    version,
    workflowId: options.workflowId.trim(),
    labels: options.labels.filter(([key]) => key !== ""),
    priority: Number(options.priority) || 0,
    delay: options.delay.trim(),
    concurrencyKey: options.concurrencyKey.trim(),
  };
}
