import type { ComponentChildren, Ref } from "preact";
import type { IconName } from "../model/statuses";
import { A } from "./a";
import { Icon } from "./icon";
import { surroundings } from "./surroundings";

export type ButtonKind = "plain" | "primary" | "danger" | "quiet";

export interface ButtonProps {
  readonly kind?: ButtonKind;
  readonly icon?: IconName;
  readonly onClick?: (event: MouseEvent) => void;
  readonly disabled?: boolean;
  readonly title?: string;
  readonly busy?: boolean;
  /** Needs no server: enabled while the server is down. The default for quiet ones. */
  readonly local?: boolean;
  readonly type?: "button" | "submit";
  /** The accessible name if the content is not text. */
  readonly label?: string;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
  readonly buttonRef?: Ref<HTMLButtonElement>;
  readonly class?: string;
  readonly children?: ComponentChildren;
}

/** Keeps the focus while it is busy or the server is down: `aria-disabled`, not `disabled`. */
export function Button(props: ButtonProps) {
  const { kind = "plain", icon, busy = false, local = kind === "quiet", children } = props;
  const off = busy || (!local && surroundings.offline.value);
  const act = (event: MouseEvent): void => {
    if (off) {
      event.preventDefault();
      event.stopPropagation();
    } else props.onClick?.(event);
  };
  return (
    <button
      type={props.type ?? "button"}
      class={`button button-${kind} ${children === undefined ? "button-icon" : ""} ${props.class ?? ""}`}
      onClick={act}
      disabled={props.disabled ?? false}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      aria-label={props.label}
      aria-pressed={props.pressed}
      aria-expanded={props.expanded}
      title={off && !busy ? "The server is not responding" : props.title}
      ref={props.buttonRef ?? null}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export interface LinkButtonProps {
  readonly href: string;
  readonly kind?: ButtonKind;
  readonly icon?: IconName;
  readonly title?: string;
  readonly label?: string;
  readonly children?: ComponentChildren;
}

export function LinkButton({ href, kind = "plain", icon, title, label, children }: LinkButtonProps) {
  return (
    <A href={href} class={`button button-${kind}`} {...(title ? { title } : {})} {...(label ? { label } : {})}>
      {icon && <Icon name={icon} />}
      {children}
    </A>
  );
}
