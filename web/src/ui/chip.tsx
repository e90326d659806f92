import type { ComponentChildren } from "preact";
import { A } from "./a";
import { Icon } from "./icon";

interface ChipProps {
  readonly children: ComponentChildren;
  readonly href?: string;
  readonly onRemove?: () => void;
  readonly onClick?: () => void;
  /** For a choice: it is selected. */
  readonly selected?: boolean;
  /** What the remove button removes, for screen readers. */
  readonly name?: string;
  readonly title?: string;
}

export function Chip({ children, href, onRemove, onClick, selected, name, title }: ChipProps) {
  if (href !== undefined) {
    return (
      <A href={href} class={`chip ${selected ? "chip-selected" : ""}`} {...(selected ? { current: true } : {})}>
        {children}
      </A>
    );
  }
  if (onClick) {
    return (
      <button
        type="button"
        class={`chip ${selected ? "chip-selected" : ""}`}
        aria-pressed={selected ?? false}
        onClick={onClick}
        title={title}
      >
        {children}
      </button>
    );
  }
  return (
    <span class="chip" title={title}>
      {children}
      {onRemove && (
        <button type="button" class="chip-remove" aria-label={`Remove ${name ?? ""}`.trim()} onClick={onRemove}>
          <Icon name="cross" />
        </button>
      )}
    </span>
  );
}
