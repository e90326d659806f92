import type { ComponentChildren, Ref } from "preact";
import { surroundings } from "./surroundings";

export interface AProps {
  readonly href: string;
  readonly class?: string;
  readonly title?: string;
  readonly label?: string;
  /** In a navigation: it is the current page. */
  readonly current?: boolean;
  readonly onClick?: (event: MouseEvent) => void;
  readonly linkRef?: Ref<HTMLAnchorElement>;
  readonly tabIndex?: number;
  readonly role?: "menuitem" | "option" | "tab";
  readonly children?: ComponentChildren;
}

/** A link within the dashboard. With a modifier key or the middle button, the browser handles it as usual. */
export function A(props: AProps) {
  const follow = (event: MouseEvent): void => {
    props.onClick?.(event);
    const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    surroundings.go(props.href);
  };
  return (
    <a
      href={props.href}
      class={props.class}
      title={props.title}
      aria-label={props.label}
      aria-current={props.current ? "page" : undefined}
      tabIndex={props.tabIndex}
      role={props.role}
      onClick={follow}
      ref={props.linkRef ?? null}
    >
      {props.children}
    </a>
  );
}

/** A user-supplied address: a link for http and https only, plain text otherwise. */
export function OuterLink({ href, children }: { readonly href: string; readonly children?: ComponentChildren }) {
  if (!/^https?:\/\//i.test(href)) return <>{children ?? href}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children ?? href}
    </a>
  );
}
