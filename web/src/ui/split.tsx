import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface SplitProps {
  readonly main: ComponentChildren;
  /** Null: none, and the main part uses the whole width. */
  readonly side: ComponentChildren | null;
  readonly width: number;
  readonly onWidth: (width: number) => void;
  /** The accessible name of the side. */
  readonly label: string;
}

const LEAST = 240;
const STEP = 24;

/** Two parts side by side, with a resizable right one. On screens below 1000 px it is below the other. */
export function Split({ main, side, width, onWidth, label }: SplitProps) {
  const root = useRef<HTMLDivElement>(null);
  const most = (): number => Math.max(LEAST, (root.current?.clientWidth ?? 1200) - 320);
  const set = (wanted: number): void => onWidth(Math.round(Math.min(most(), Math.max(LEAST, wanted))));
  const drag = (event: PointerEvent): void => {
    const bar = event.currentTarget as HTMLElement;
    bar.setPointerCapture(event.pointerId);
    const from = event.clientX;
    const move = (moved: PointerEvent): void => set(width + from - moved.clientX);
    const end = (): void => {
      bar.removeEventListener("pointermove", move);
      bar.removeEventListener("pointerup", end);
      bar.removeEventListener("pointercancel", end);
    };
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", end);
    bar.addEventListener("pointercancel", end);
  };
  const onKey = (event: KeyboardEvent): void => {
    const to = { ArrowLeft: width + STEP, ArrowRight: width - STEP, Home: most(), End: LEAST }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(to);
  };
  return (
    <div class={`split ${side === null ? "split-alone" : ""}`} ref={root} style={{ "--side": `${width}px` }}>
      <div class="split-main">{main}</div>
      {side !== null && (
        <>
          <div
            class="split-bar"
            role="separator"
            aria-orientation="vertical"
            aria-label={`Width of ${label}`}
            aria-valuenow={width}
            aria-valuemin={LEAST}
            aria-valuemax={2000}
            tabIndex={0}
            onPointerDown={drag}
            onKeyDown={onKey}
          />
          <aside class="split-side" aria-label={label}>
            {side}
          </aside>
        </>
      )}
    </div>
  );
}
