import type { IconName } from "../model/statuses";

/** Drawn on a 16 x 16 grid with a stroke of 1.5. */
const PATHS: Readonly<Record<IconName, string>> = {
  "circle-dashed":
    "M8 2.2a5.8 5.8 0 0 1 2.3.5M12.6 4.4a5.8 5.8 0 0 1 1.2 3.2M13 10.8a5.8 5.8 0 0 1-2.3 2.4" +
    "M8 13.8a5.8 5.8 0 0 1-2.3-.5M3.4 11.6a5.8 5.8 0 0 1-1.2-3.2M3 5.2a5.8 5.8 0 0 1 2.3-2.4",
  play: "M5 3.2v9.6l7.6-4.8z",
  moon: "M13.2 9.6A5.6 5.6 0 1 1 6.4 2.8a4.6 4.6 0 0 0 6.8 6.8z",
  envelope: "M2 4h12v8.5H2zM2.3 4.3 8 9l5.7-4.7",
  refresh: "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.6 1.8V4.6h-2.8",
  pause: "M5.2 3v10M10.8 3v10",
  check: "M2.8 8.6 6.4 12l6.8-8",
  cross: "M3.6 3.6l8.8 8.8M12.4 3.6l-8.8 8.8",
  stop: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM4 12 12 4",
  minus: "M3 8h10",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.4 10.4l3.4 3.4",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.3V2.5h-8v8h2.8",
  "chevron-right": "M6 3l5 5-5 5",
  "chevron-down": "M3 6l5 5 5-5",
  menu: "M2 4h12M2 8h12M2 12h12",
  external: "M9.5 2.5h4v4M13.3 2.7 7.5 8.5M12 9v4.5H2.5V4H7",
  flag: "M4 14V2.5h8.5L10.5 6l2 3.5H4",
  fork: "M4.5 2v5a3 3 0 0 0 3 3h1M4.5 14V5M8.5 10h3M9.5 8l2.3 2-2.3 2",
  clock: "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2zM8 4.8V8l2.4 1.6",
  child: "M3.5 2.5v8h4M7.5 8h5.5v5H7.5z",
  warning: "M8 2.2 14.4 13.4H1.6zM8 6.4v3.2M8 11.4v.4",
  plus: "M8 3v10M3 8h10",
  trash: "M2.5 4.5h11M6 4.3V2.5h4v1.8M4 4.6l.7 8.9h6.6l.7-8.9M6.8 7v4M9.2 7v4",
  key: "M10.5 2.5a3.5 3.5 0 0 0-3.3 4.6L2.5 11.8v1.7h2.6v-1.6h1.6v-1.6l1.8-1.8a3.5 3.5 0 1 0 2-6zM11 5.2v.2",
};

const FILLED: ReadonlySet<IconName> = new Set<IconName>(["play", "moon"]);

interface IconProps {
  readonly name: IconName;
  /** The accessible name if there is no text beside it. */
  readonly label?: string;
}

export function Icon({ name, label }: IconProps) {
  const spoken = label === undefined ? { "aria-hidden": true } : { role: "img" as const, "aria-label": label };
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" focusable="false" {...spoken}>
      <path d={PATHS[name]} fill={FILLED.has(name) ? "currentColor" : "none"} />
    </svg>
  );
}
