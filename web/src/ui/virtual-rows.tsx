import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualRowsProps {
  readonly count: number;
  readonly rowHeight: number;
  readonly render: (index: number) => ComponentChildren;
  readonly keyOf?: (index: number) => string | number;
  /** Scrolled into view when it changes. */
  readonly shownIndex?: number | null;
  readonly overscan?: number;
  readonly class?: string;
  readonly label?: string;
  readonly role?: "list" | "listbox" | "rowgroup" | "presentation";
}

/** Many rows of one height; only the visible ones are in the document. */
export function VirtualRows(props: VirtualRowsProps) {
  const { count, rowHeight, render, keyOf, shownIndex, overscan = 8 } = props;
  const ref = useRef<HTMLDivElement>(null);
  const [span, setSpan] = useState({ first: 0, last: 40 });
  const measure = (): void => {
    const box = ref.current;
    if (!box) return;
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - overscan);
    const last = Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + overscan;
    setSpan((was) => (was.first === first && was.last === last ? was : { first, last }));
  };
  useLayoutEffect(measure, [count, rowHeight]);
  useEffect(() => {
    if (!ref.current) return;
    const sizes = new ResizeObserver(measure);
    sizes.observe(ref.current);
    return () => sizes.disconnect();
  }, [rowHeight]);
  useLayoutEffect(() => {
    const box = ref.current;
    if (!box || shownIndex === null || shownIndex === undefined) return;
    const top = shownIndex * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
  }, [shownIndex, rowHeight]);
  const indexes: number[] = [];
  for (let index = span.first; index < Math.min(span.last, count); index += 1) indexes.push(index);
  return (
    <div ref={ref} class={`virtual ${props.class ?? ""}`} onScroll={measure} role={props.role ?? "group"} aria-label={props.label}>
      <div class="virtual-space" style={{ height: `${count * rowHeight}px` }}>
        {indexes.map((index) => (
          <div
            key={keyOf ? keyOf(index) : index}
            class="virtual-row"
            style={{ height: `${rowHeight}px`, transform: `translateY(${index * rowHeight}px)` }}
          >
            {render(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
