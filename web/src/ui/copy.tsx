import { useEffect, useRef, useState } from "preact/hooks";
import { Button, type ButtonKind } from "./button";

interface CopyProps {
  readonly text: string | (() => string);
  readonly label: string;
  /** Shows the label beside the icon. */
  readonly wide?: boolean;
  readonly kind?: ButtonKind;
}

/** Copies a text, also on plain HTTP, where browsers have no clipboard API. */
export function Copy({ text, label, wide, kind = "quiet" }: CopyProps) {
  const [done, setDone] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const act = async (event: MouseEvent): Promise<void> => {
    event.stopPropagation();
    if (!(await copyText(typeof text === "string" ? text : text()))) return;
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 1500);
  };
  return (
    <>
      <Button
        kind={kind}
        icon={done ? "check" : "copy"}
        local
        label={done ? "Copied" : label}
        title={label}
        onClick={(event) => void act(event)}
      >
        {wide ? (done ? "Copied" : label) : undefined}
      </Button>
      <span class="visually-hidden" role="status">
        {done ? "Copied" : ""}
      </span>
    </>
  );
}

export async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard && isSecureContext) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // not allowed: try the older way
  }
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  area.setAttribute("aria-hidden", "true");
  (document.querySelector("dialog[open]") ?? document.body).append(area); // nothing outside a modal can be selected
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
