import { useState } from "preact/hooks";
import { checkSyntax } from "../../model/json-text";
import { type Field, type FormValue, formToText, initialForm, validateForm, withEntry } from "../../model/schema-form";
import { Button } from "../../ui/button";
import { JsonEditor } from "../../ui/json-editor";
import { SchemaForm } from "../../ui/schema-form";
import { Keys } from "../../ui/shortcuts";
import type { TwoButtons } from "./buttons";

interface AnswerFormProps {
  /** The schema of the answer; null: unknown, and any JSON is accepted. */
  readonly field: Field | null;
  readonly signal: string;
  /** Yes and no buttons beside the other fields. */
  readonly buttons: TwoButtons | null;
  readonly busy: boolean;
  readonly onAnswer: (text: string, word: string) => void;
}

export function AnswerForm({ field, signal, buttons, busy, onAnswer }: AnswerFormProps) {
  return field === null || field.kind === "json" ? (
    <JsonForm signal={signal} busy={busy} onAnswer={onAnswer} />
  ) : (
    <FieldsForm field={field} signal={signal} buttons={buttons} busy={busy} onAnswer={onAnswer} />
  );
}

interface FieldsFormProps extends Omit<AnswerFormProps, "field"> {
  readonly field: Field;
}

/** Shows errors only after the first attempt to submit: an empty form is not a mistake. */
function FieldsForm({ field, signal, buttons, busy, onAnswer }: FieldsFormProps) {
  const [value, setValue] = useState<FormValue>(() => initialForm(field));
  const [tried, setTried] = useState(false);
  const errors = validateForm(field, value);
  const send = (answer: FormValue, word?: string) => {
    setTried(true);
    const text = formToText(field, answer);
    if (errors.length === 0) onAnswer(text, word ?? text);
  };
  const choose = (text: string, word: string) => {
    if (buttons !== null) send(withEntry(value, buttons.field ?? "", { kind: "text", text }), word);
  };
  return (
    <form
      class="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (buttons === null) send(value);
      }}
    >
      <SchemaForm
        field={field}
        value={value}
        errors={tried ? errors : []}
        onChange={setValue}
        label={signal}
        {...(buttons?.field ? { without: buttons.field } : {})}
      />
      {buttons === null ? <Send busy={busy} /> : <YesOrNo buttons={buttons} busy={busy} onChoose={choose} />}
    </form>
  );
}

interface YesOrNoProps {
  readonly buttons: TwoButtons;
  readonly busy: boolean;
  readonly onChoose: (text: string, word: string) => void;
}

export function YesOrNo({ buttons: { yes, no, yesWord, noWord }, busy, onChoose }: YesOrNoProps) {
  return (
    <p class="row">
      <Button kind="primary" busy={busy} class="inbox-yes" onClick={() => onChoose(yes, yesWord)}>
        {yesWord} <Keys keys="a" />
      </Button>
      <Button busy={busy} class="inbox-no" onClick={() => onChoose(no, noWord)}>
        {noWord} <Keys keys="d" />
      </Button>
    </p>
  );
}

function JsonForm({ signal, busy, onAnswer }: Omit<AnswerFormProps, "field" | "buttons">) {
  const [text, setText] = useState("null");
  const wrong = checkSyntax(text) !== null;
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong) onAnswer(text, text);
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
