import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { IconName } from "../model/statuses";
import { A } from "./a";
import { Button, type ButtonKind } from "./button";
import { Icon } from "./icon";
import { surroundings } from "./surroundings";

export interface MenuItem {
  readonly label: string;
  readonly onSelect?: () => void;
  readonly href?: string;
  readonly icon?: IconName;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  /** Why it is disabled, or what it does. */
  readonly hint?: string;
  /** Needs no server. */
  readonly local?: boolean;
}

interface MenuProps {
  readonly label: string;
  /** A function is called when the menu opens: a list has many menus. */
  readonly items: readonly MenuItem[] | (() => readonly MenuItem[]);
  readonly kind?: ButtonKind;
  readonly icon?: IconName;
  /** Shows the icon only; the label is the accessible name. */
  readonly iconOnly?: boolean;
  /** The end of the button at which it opens. */
  readonly align?: "start" | "end";
}

/** A button that opens a list of actions: arrows, Home, End and first letters move in it, Esc closes it. */
export function Menu({ label, items, kind = "plain", icon, iconOnly, align = "start" }: MenuProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  // Before the next key event, which belongs to the open menu.
  useLayoutEffect(() => {
    if (!open) return;
    keepInView(list.current);
    entries(root.current)[0]?.focus();
    const outside = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (!open) {
      if (event.key === "ArrowDown") {
        event.preventDefault();
        setOpen(true);
      }
      return;
    }
    if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      event.stopPropagation();
      close();
    } else if (move(entries(root.current), event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKey}>
      <Button
        kind={kind}
        {...(icon ? { icon } : {})}
        {...(iconOnly ? { label } : {})}
        local
        buttonRef={button}
        expanded={open}
        onClick={() => setOpen(!open)}
      >
        {iconOnly ? undefined : (
          <>
            {label} <Icon name="chevron-down" />
          </>
        )}
      </Button>
      {open && (
        <ul class={`menu-list menu-${align}`} role="menu" id={id} aria-label={label} ref={list}>
          {(typeof items === "function" ? items() : items).map((item) => (
            <li key={item.label} role="none">
              <Entry item={item} close={close} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Entry({ item, close }: { readonly item: MenuItem; readonly close: () => void }) {
  const content = (
    <>
      {item.icon && <Icon name={item.icon} />}
      <span>
        {item.label}
        {item.hint && <span class="menu-hint">{item.hint}</span>}
      </span>
    </>
  );
  if (item.href !== undefined && !item.disabled) {
    return (
      <A href={item.href} role="menuitem" tabIndex={-1} class="menu-item" onClick={close}>
        {content}
      </A>
    );
  }
  const off = item.disabled || (!item.local && surroundings.offline.value);
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      class={`menu-item ${item.danger ? "menu-danger" : ""}`}
      aria-disabled={off || undefined}
      onClick={() => {
        if (off) return;
        close();
        item.onSelect?.();
      }}
    >
      {content}
    </button>
  );
}

const MARGIN = 8;

/** On a narrow screen, neither end of the button may have enough space. */
function keepInView(list: HTMLElement | null): void {
  if (!list) return;
  const { left, right } = list.getBoundingClientRect();
  const most = document.documentElement.clientWidth - MARGIN;
  const shift = left < MARGIN ? MARGIN - left : Math.min(0, most - right);
  if (shift !== 0) list.style.transform = `translateX(${shift}px)`;
}

function entries(root: HTMLElement | null): HTMLElement[] {
  return [...(root?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
}

function move(all: HTMLElement[], key: string): boolean {
  const at = all.indexOf(document.activeElement as HTMLElement);
  const to = target(all, at, key);
  if (to === undefined) return false;
  to.focus();
  return true;
}

function target(all: HTMLElement[], at: number, key: string): HTMLElement | undefined {
  if (key === "ArrowDown") return all[(at + 1) % all.length];
  if (key === "ArrowUp") return all[(at - 1 + all.length) % all.length];
  if (key === "Home") return all[0];
  if (key === "End") return all[all.length - 1];
  if (!/^\S$/.test(key)) return undefined;
  const after = [...all.slice(at + 1), ...all.slice(0, at + 1)];
  return after.find((each) => each.textContent?.trim().toLowerCase().startsWith(key.toLowerCase()));
}
