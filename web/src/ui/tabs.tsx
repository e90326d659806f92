import type { ComponentChildren } from "preact";

export interface TabItem {
  readonly id: string;
  readonly label: string;
  readonly count?: number | undefined;
}

interface TabsProps {
  readonly tabs: readonly TabItem[];
  readonly active: string;
  readonly onSelect: (id: string) => void;
  readonly label?: string;
  /** The panel of the active one. */
  readonly children?: ComponentChildren;
}

/** Arrows, Home and End select; Tab leaves for the panel. */
export function Tabs({ tabs, active, onSelect, label, children }: TabsProps) {
  const select = (index: number, root: HTMLElement): void => {
    const to = tabs[(index + tabs.length) % tabs.length];
    if (!to) return;
    onSelect(to.id);
    root.querySelector<HTMLElement>(`[data-tab="${CSS.escape(to.id)}"]`)?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    const at = tabs.findIndex((tab) => tab.id === active);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    select(to, event.currentTarget as HTMLElement);
  };
  const current = tabs.find((tab) => tab.id === active);
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKey}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            class="tab"
            data-tab={tab.id}
            aria-selected={tab.id === active}
            tabIndex={tab.id === active ? 0 : -1}
            onClick={() => onSelect(tab.id)}
          >
            {tab.label}
            {tab.count !== undefined && <span class="tab-count"> {tab.count}</span>}
          </button>
        ))}
      </div>
      {children !== undefined && (
        <div class="tab-panel" role="tabpanel" aria-label={current?.label} tabIndex={-1}>
          {children}
        </div>
      )}
    </>
  );
}
