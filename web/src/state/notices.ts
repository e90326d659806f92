import { signal, type ReadonlySignal } from "@preact/signals";

export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly kind: "ok" | "error";
  /** A link to the next page. */
  readonly href: string | null;
}

const SHOWN_MS = 6000;
const MOST = 4;
const list = signal<readonly Notice[]>([]);
let last = 0;

export const notices: ReadonlySignal<readonly Notice[]> = list;

/** Shows a message in the corner. Successes disappear by themselves; errors stay until dismissed. */
export function notice(text: string, options: { kind?: "ok" | "error"; href?: string } = {}): void {
  last += 1;
  const added: Notice = { id: last, text, kind: options.kind ?? "ok", href: options.href ?? null };
  list.value = [...list.value, added].slice(-MOST);
  if (added.kind === "ok") setTimeout(() => dismiss(added.id), SHOWN_MS);
}

export function dismiss(id: number): void {
  list.value = list.value.filter((each) => each.id !== id);
}
