// Formats and parses durations.
import { formatTime, type Zone } from "./times";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** At most two units: `850ms`, `1.8s`, `52s`, `2h 11m`, `1d 3h`. A zero duration (begun and ended in one operation) or
 * a negative one (clock skew) is shown as `<1ms`. */
export function formatDuration(ms: number): string {
  if (!(ms >= 1)) return "<1ms";
  if (Math.round(ms) < SECOND) return `${Math.round(ms)}ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 100) return `${tenths % 10 ? (tenths / 10).toFixed(1) : tenths / 10}s`;
  const seconds = Math.round(ms / SECOND);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return twoUnits(seconds, 60, "m", "s");
  const minutes = Math.round(ms / MINUTE);
  if (minutes < 24 * 60) return twoUnits(minutes, 60, "h", "m");
  return twoUnits(Math.round(ms / HOUR), 24, "d", "h");
}

function twoUnits(count: number, size: number, large: string, small: string): string {
  const rest = count % size;
  const whole = `${groupThousands(Math.floor(count / size))}${large}`;
  return rest ? `${whole} ${rest}${small}` : whole;
}

/** With a narrow space between thousands, as in all counts, at which no line breaks. */
export function groupThousands(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

const WORDS: readonly (readonly [number, string])[] = [
  [DAY, "day"],
  [HOUR, "hour"],
  [MINUTE, "minute"],
  [SECOND, "second"],
];

/** In words, for screen readers: `52 seconds`, `2 hours 11 minutes`, `850 milliseconds`. */
export function speakDuration(ms: number): string {
  const text = formatDuration(ms);
  const names: Record<string, string> = { d: "day", h: "hour", m: "minute", s: "second", ms: "millisecond" };
  if (text === "<1ms") return "less than a millisecond";
  return text
    .split(" ")
    .map((part) => {
      const unit = part.replace(/^[\d.\u202f]+/, "");
      const count = part.slice(0, part.length - unit.length);
      return `${count} ${names[unit] ?? unit}${count === "1" ? "" : "s"}`;
    })
    .join(" ");
}

const UNITS = new Map<string, number>();
// The units of the server's parser, so that both accept the same texts.
for (const [size, names] of [
  [1e-6, "ns nsec nanos nanosecond nanoseconds"],
  [1e-3, "us usec usecs µs microsecond microseconds"],
  [1, "ms msec msecs millis millisecond milliseconds"],
  [SECOND, "s sec secs second seconds"],
  [MINUTE, "m min mins minute minutes"],
  [HOUR, "h hr hrs hour hours"],
  [DAY, "d day days"],
  [7 * DAY, "w wk wks week weeks"],
  [30.44 * DAY, "M month months"],
  [365.25 * DAY, "y yr yrs year years"],
] as const) {
  for (const name of names.split(" ")) UNITS.set(name, size);
}

/** Parses a duration like the server: numbers with units, such as `90s`, `5m 30s`, `1.5h`. Null: invalid. */
export function parseDuration(text: string): number | null {
  const part = /\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ]+)\s*,?/y;
  const trimmed = text.trim();
  let total = 0;
  while (part.lastIndex < trimmed.length) {
    const found = part.exec(trimmed);
    const size = found && UNITS.get(found[2] ?? "");
    if (!found || !size) return null;
    total += Number(found[1]) * size;
  }
  return trimmed ? total : null;
}

/** `12s ago`, in one unit; after a day the time itself, because `3d ago` is too vague. */
export function ageOf(thenMs: number, nowMs: number, zone: Zone = "local"): string {
  const age = nowMs - thenMs;
  if (age >= DAY) return formatTime(thenMs, zone, "datetime");
  return shortAgeOf(thenMs, nowMs);
}

/** Always an age, where there is no space for a time; the tooltip shows the time. */
export function shortAgeOf(thenMs: number, nowMs: number): string {
  const age = nowMs - thenMs;
  return age < SECOND ? "now" : `${oneUnit(age)} ago`;
}

/** `in 18s`, counting down to the stored time; `now` once it has passed. */
export function untilOf(thenMs: number, nowMs: number, zone: Zone = "local"): string {
  const left = thenMs - nowMs;
  if (left >= DAY) return formatTime(thenMs, zone, "datetime");
  // Rounded up: a countdown that shows 0 while time is left looks stuck.
  return left <= 0 ? "now" : `in ${formatDuration(Math.ceil(left / SECOND) * SECOND)}`;
}

function oneUnit(ms: number): string {
  for (const [size, name] of WORDS) if (ms >= size) return `${Math.floor(ms / size)}${name[0] ?? ""}`;
  return "0s";
}
