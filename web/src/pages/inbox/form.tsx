import { useState } from "preact/hooks";
import { checkSyntax } from "../../model/json-text";
import { type Field, type FormValue, formToText, initialForm, validateForm } from "../../model/schema-form";
import { Button } from "../../ui/button";
import { JsonEditor } from "../../ui/json-editor";
import { SchemaForm } from "../../ui/schema-form";

interface AnswerFormProps {
  /** What is asked for; null: nobody knows, and any JSON will do. */
  readonly field: Field | null;
  readonly signal: string;
  readonly busy: boolean;
  readonly onAnswer: (text: string) => void;
}

export function AnswerForm({ field, signal, busy, onAnswer }: AnswerFormProps) {
  return field === null || field.kind === "json" ? (
    <JsonForm signal={signal} busy={busy} onAnswer={onAnswer} />
  ) : (
    <FieldsForm field={field} signal={signal} busy={busy} onAnswer={onAnswer} />
  );
}

interface FieldsFormProps extends Omit<AnswerFormProps, "field"> {
  readonly field: Field;
}

/** Errors are shown once somebody has tried to send: an empty form is not a mistake. */
function FieldsForm({ field, signal, busy, onAnswer }: FieldsFormProps) {
  const [value, setValue] = useState<FormValue>(() => initialForm(field));
  const [tried, setTried] = useState(false);
  const errors = validateForm(field, value);
  return (
    <form
      class="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (errors.length === 0) onAnswer(formToText(field, value));
      }}
    >
      <SchemaForm field={field} value={value} errors={tried ? errors : []} onChange={setValue} label={signal} />
      <Send busy={busy} />
    </form>
  );
}

function JsonForm({ signal, busy, onAnswer }: Omit<AnswerFormProps, "field">) {
  const [text, setText] = useState("null");
  const wrong = checkSyntax(text) !== null;
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong) onAnswer(text);
      }}
    >
      <JsonEditor label={`Value of ${signal}, as JSON`} rows={3} text={text} onText={setText} />
      <Send busy={busy} off={wrong} />
    </form>
  );
}

function Send({ busy, off = false }: { readonly busy: boolean; readonly off?: boolean }) {
  return (
    <p class="row">
      <Button kind="primary" type="submit" busy={busy} disabled={off}>
        Send
      </Button>
    </p>
  );
}
