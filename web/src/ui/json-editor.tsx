import { checkSyntax } from "../model/json-text";
import { useFieldIds } from "./field";

interface JsonEditorProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  /** A further error, from the server or a schema. */
  readonly error?: string | null;
  readonly label?: string;
  readonly rows?: number;
}

/** Edits JSON as text, which is sent as typed. Tab leaves it, as in other fields. */
export function JsonEditor({ text, onText, error, label, rows }: JsonEditorProps) {
  const ids = useFieldIds();
  const wrong = text.trim() === "" ? null : checkSyntax(text);
  const shown = wrong ?? error ?? null;
  return (
    <div class="json-editor">
      <textarea
        {...ids}
        class="input mono"
        rows={rows ?? Math.min(24, Math.max(4, text.split("\n").length + 1))}
        value={text}
        spellcheck={false}
        autocomplete="off"
        aria-label={label}
        aria-invalid={shown !== null || undefined}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      <p class="field-error" role="status">
        {shown ?? ""}
      </p>
    </div>
  );
}
