import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Dialog } from "./dialog";
import { surroundings } from "./surroundings";

export interface Shortcut {
  /** `j`, `?`, `Escape`, `Ctrl+k` (Cmd on a Mac), `Alt+!`; `g r` is a sequence. */
  readonly keys: string;
  readonly label: string;
  /** Returns false if it has nothing to do: then the next handler is tried. */
  readonly handler: (event: KeyboardEvent) => void | boolean;
  readonly group: string;
}

const SEQUENCE_MS = 1200;
const list = signal<readonly Shortcut[]>([]);
let pending = "";
let pendingUntil = 0;

export const shortcuts: ReadonlySignal<readonly Shortcut[]> = list;

/** A shortcut, active while the component is shown. Single keys are off while the user types, in dialogs, and if the
 * preferences disable them. The newest handler comes first. */
export function useShortcut(
  keys: string,
  label: string,
  handler: (event: KeyboardEvent) => void | boolean,
  group = "This page",
): void {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const added: Shortcut = { keys, label, group, handler: (event) => latest.current(event) };
    list.value = [...list.peek(), added];
    return () => {
      list.value = list.peek().filter((each) => each !== added);
    };
  }, [keys, label, group]);
}

/** The notation of a key event. */
export function keysOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  const key = event.key.length === 1 && (event.ctrlKey || event.metaKey) ? event.key.toLowerCase() : event.key;
  return `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${key}`;
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  const buttons = ["checkbox", "radio", "button", "submit", "range"];
  return target instanceof HTMLInputElement && !buttons.includes(target.type);
}

/** Call with each key event of the document. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const modified = event.ctrlKey || event.metaKey;
  const named = event.key.length > 1;
  const open = document.querySelector("dialog[open]") !== null;
  if (!modified && (isTyping(event.target) || open)) return;
  if (modified && open) return;
  if (!modified && !named && !surroundings.singleKeys.peek()) return;
  // Enter and Space belong to the focused control
  if ((event.key === "Enter" || event.key === " ") && isControl(event.target)) return;
  const keys = keysOf(event);
  const sequence = Date.now() < pendingUntil ? `${pending} ${keys}` : "";
  pending = "";
  pendingUntil = 0;
  if (sequence !== "" && run(sequence, event)) return;
  if (run(keys, event)) return;
  if (list.peek().some((each) => each.keys.startsWith(`${keys} `))) {
    pending = keys;
    pendingUntil = Date.now() + SEQUENCE_MS;
  }
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary, input, select, [role=button]") !== null;
}

function run(keys: string, event: KeyboardEvent): boolean {
  for (const each of [...list.peek()].reverse()) {
    if (each.keys !== keys || each.handler(event) === false) continue;
    event.preventDefault();
    return true;
  }
  return false;
}

/** Lists all active shortcuts. */
export function ShortcutsOverlay({ onClose }: { readonly onClose: () => void }) {
  const groups = new Map<string, Shortcut[]>();
  for (const each of list.value) {
    const group = groups.get(each.group) ?? [];
    if (!group.some((known) => known.keys === each.keys)) group.push(each);
    groups.set(each.group, group);
  }
  return (
    <Dialog title="Keys" onClose={onClose}>
      {!surroundings.singleKeys.value && <p>Single-key shortcuts are turned off in the settings.</p>}
      <div class="shortcut-groups">
        {[...groups].map(([group, keys]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl class="shortcut-list">
              {keys.map((each) => (
                <div key={each.keys}>
                  <dt>
                    <Keys keys={each.keys} />
                  </dt>
                  <dd>{each.label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

const NAMES: Readonly<Record<string, string>> = { Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓", " ": "Space" };

export function Keys({ keys }: { readonly keys: string }) {
  const mac = typeof navigator !== "undefined" && /Mac|iP(ad|hone)/.test(navigator.platform);
  const shown = (part: string): string => NAMES[part] ?? (part === "Ctrl" && mac ? "⌘" : part);
  return (
    <span class="keys">
      {keys.split(" ").map((key, index) => (
        <kbd key={index}>
          {key
            .split(/\+(?=.)/)
            .map(shown)
            .join(mac ? "" : "+")}
        </kbd>
      ))}
    </span>
  );
}
