// The rows. Up to a few hundred are all in the document, so that the browser's search finds them; above that, a pool of
// elements is reused while scrolling.
import type { RefObject, ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const PLAIN_MOST = 500;
const OVERSCAN = 10;

interface BodyProps {
  count: number;
  rowPx: number;
  headPx: number;
  box: RefObject<HTMLDivElement | null>;
  keyOf: (index: number) => string;
  render: (index: number, top: number | null) => ComponentChildren;
}

export function RowsBody({ count, rowPx, headPx, box, keyOf, render }: BodyProps) {
  const pooled = count > PLAIN_MOST;
  const [span, setSpan] = useState<readonly [number, number]>([0, 60]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!pooled || element === null) return;
    const measure = () => {
      const size = Math.ceil(element.clientHeight / rowPx) + 2 * OVERSCAN;
      const first = Math.max(0, Math.min(Math.floor((element.scrollTop - headPx) / rowPx) - OVERSCAN, count - size));
      const last = Math.min(count, first + size);
      setSpan((was) => (was[0] === first && was[1] === last ? was : [first, last]));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      sizes.disconnect();
    };
  }, [pooled, count, rowPx]);
  const [first, last] = pooled ? span : [0, count];
  const size = Math.max(1, last - first);
  const shown: ComponentChildren[] = [];
  for (let index = first; index < Math.min(last, count); index += 1) {
    // an element of the pool keeps its node whatever row it shows
    shown.push(
      <Slot key={pooled ? `slot ${index % size}` : keyOf(index)}>{render(index, pooled ? index * rowPx : null)}</Slot>,
    );
  }
  return (
    <div
      class={`timeline-body${pooled ? " is-pooled" : ""}`}
      role="rowgroup"
      style={pooled ? { height: `${count * rowPx}px` } : { height: "auto" }}
    >
      {shown}
    </div>
  );
}

function Slot({ children }: { children: ComponentChildren }) {
  return <>{children}</>;
}

/** Scrolls the minimum distance that makes a row visible. */
export function scrollToRow(box: HTMLElement, index: number, rowPx: number, headPx: number): void {
  const top = index * rowPx;
  const seen = box.clientHeight - headPx;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowPx > box.scrollTop + seen) box.scrollTop = top + rowPx - seen;
}
