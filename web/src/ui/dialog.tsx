import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import { ErrorBox, type ShownProblem } from "./error-box";

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly wide?: boolean;
  readonly class?: string;
}

/** A modal dialog. Esc closes it; a click outside does not, as typed text would be lost. Restores the focus when it
 * closes. */
export function Dialog({ title, onClose, children, actions, wide, class: more }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog ${wide ? "dialog-wide" : ""} ${more ?? ""}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <Button kind="quiet" icon="cross" label="Close" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
      {actions && <footer class="dialog-actions">{actions}</footer>}
    </dialog>
  );
}

export interface ConfirmDialogProps {
  readonly title: string;
  /** What it changes, and what stays unchanged. */
  readonly touches: ComponentChildren;
  readonly verb: string;
  readonly danger?: boolean;
  /** `key`: the Idempotency-Key of this action, also for retries. The caller closes the dialog. */
  readonly onConfirm: (key: string) => Promise<void>;
  readonly onClose: () => void;
  /** Fields to fill in. */
  readonly children?: ComponentChildren;
  readonly disabled?: boolean;
  /** Must be typed to confirm an action on many runs. */
  readonly typed?: string;
}

/** Asks for confirmation, acts once, and shows an error in place; typed text stays. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const [key] = useState(newKey);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ShownProblem | null>(null);
  const [typed, setTyped] = useState("");
  const acting = useRef(false);
  const mounted = useRef(true);
  useEffect(() => () => void (mounted.current = false), []);
  const ready = !props.disabled && (props.typed === undefined || typed.trim() === props.typed);
  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (acting.current || !ready) return; // a second click may come before the first one is rendered
    acting.current = true;
    setBusy(true);
    setProblem(null);
    try {
      await props.onConfirm(key);
    } catch (error) {
      if (mounted.current) setProblem(shown(error));
    } finally {
      acting.current = false;
      if (mounted.current) setBusy(false);
    }
  };
  const form = useId();
  const actions = (
    <>
      <Button local onClick={props.onClose}>
        Close
      </Button>
      <button
        type="submit"
        form={form}
        class={`button button-${props.danger ? "danger" : "primary"}`}
        disabled={!ready}
        aria-busy={busy || undefined}
      >
        {props.verb}
      </button>
    </>
  );
  return (
    <Dialog title={props.title} onClose={props.onClose} actions={actions}>
      <form id={form} onSubmit={(event) => void confirm(event)} class="stack">
        <div class="touches">{props.touches}</div>
        {props.children}
        {props.typed !== undefined && (
          <label class="field">
            <span class="field-label">
              Type <strong>{props.typed}</strong> to continue
            </span>
            <input class="input" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        )}
        {problem && <ErrorBox problem={problem} />}
      </form>
    </Dialog>
  );
}

function shown(error: unknown): ShownProblem {
  if (typeof error === "object" && error !== null && "detail" in error) return error as ShownProblem;
  return { title: "Something went wrong", detail: error instanceof Error ? error.message : String(error) };
}

function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
