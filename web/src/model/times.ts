// Parses RFC 3339 and formats times, always with a time zone.

/** `local`: the browser's zone; otherwise `utc` or a name such as `Europe/Berlin`. */
export type Zone = "local" | "utc" | (string & {});
export type TimeStyle = "time" | "datetime" | "date";

let minuteText = "";
let minuteMs = 0;

/** Milliseconds since 1970, microseconds as a fraction; NaN if invalid. */
export function toMs(rfc3339: string): number {
  // Fast path for the API's format, `2026-11-16T17:12:21.008703Z`: a timeline has tens of thousands of times.
  if (rfc3339.length === 27 && rfc3339.charCodeAt(26) === 90) {
    if (!rfc3339.startsWith(minuteText) || !minuteText) {
      const ms = Date.parse(`${rfc3339.slice(0, 17)}00Z`);
      if (Number.isNaN(ms)) return NaN;
      minuteText = rfc3339.slice(0, 17);
      minuteMs = ms;
    }
    return minuteMs + Number(rfc3339.slice(17, 26)) * 1000;
  }
  return parsedMs(rfc3339);
}

function parsedMs(rfc3339: string): number {
  const found = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i.exec(rfc3339.trim());
  if (!found) return NaN;
  const whole = Date.parse(`${found[1]}T${found[2]}${(found[4] ?? "Z").toUpperCase()}`);
  return whole + (found[3] ? Number(`0.${found[3]}`) * 1000 : 0);
}

/** Splits a text, with every time in it as milliseconds. */
export function timesIn(text: string): (string | number)[] {
  return text
    .split(/(\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))/)
    .map((part, index) => (index % 2 === 1 ? toMs(part) : part))
    .filter((part) => part !== "");
}

/** Null stays null, for times that have not come yet. */
export function msOrNull(rfc3339: string | null | undefined): number | null {
  if (!rfc3339) return null;
  const ms = toMs(rfc3339);
  return Number.isNaN(ms) ? null : ms;
}

/** RFC 3339 in UTC with microseconds, as in the API; used for tooltips and copying. */
export function toUtc(ms: number): string {
  const micros = Math.round(ms * 1000);
  const whole = Math.floor(micros / 1e6) * 1000;
  const fraction = String(micros - whole * 1000).padStart(6, "0");
  return `${new Date(whole).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** `14:02:11.304 CET`, `2026-11-16 14:02:11 CET`, `2026-11-16 CET`: never without the zone. */
export function formatTime(ms: number, zone: Zone, style: TimeStyle): string {
  if (!Number.isFinite(ms)) return "";
  const parts = partsOf(ms, zone);
  const name = zoneName(ms, zone);
  const date = `${parts.year}-${parts.month}-${parts.day}`;
  const clock = `${parts.hour}:${parts.minute}:${parts.second}`;
  if (style === "date") return `${date} ${name}`;
  if (style === "datetime") return `${date} ${clock} ${name}`;
  return `${clock}.${String(Math.floor(((ms % 1000) + 1000) % 1000)).padStart(3, "0")} ${name}`;
}

/** The short name of the zone at that time: `CET` in winter, `CEST` in summer. */
export function zoneName(ms: number, zone: Zone): string {
  if (zone === "utc") return "UTC";
  // British English has the European names, American English the American ones; others are offsets.
  const names = ["en-GB", "en-US"].map((locale) => {
    const parts = formatter(locale, zone, true).formatToParts(new Date(ms));
    return parts.find((part) => part.type === "timeZoneName")?.value ?? "";
  });
  return names.find((name) => !/^GMT[+-]/.test(name)) ?? names[0] ?? "";
}

export interface TimeParts {
  year: string;
  month: string;
  day: string;
  hour: string;
  minute: string;
  second: string;
}

export function partsOf(ms: number, zone: Zone): TimeParts {
  const found: Record<string, string> = {};
  for (const part of formatter("en-GB", zone, false).formatToParts(new Date(Math.floor(ms)))) {
    found[part.type] = part.value;
  }
  const { year = "", month = "", day = "", hour = "", minute = "", second = "" } = found;
  return { year, month, day, hour, minute, second };
}

/** The zone's offset from UTC at that time. */
export function offsetOf(ms: number, zone: Zone): number {
  const p = partsOf(ms, zone);
  const there = Date.UTC(+p.year, +p.month - 1, +p.day, +p.hour, +p.minute, +p.second);
  return there - Math.floor(ms / 1000) * 1000;
}

/** Midnight before that time in the zone, also on days of 23 or 25 hours. */
export function startOfDay(ms: number, zone: Zone): number {
  const p = partsOf(ms, zone);
  const midnight = Date.UTC(+p.year, +p.month - 1, +p.day);
  const guess = midnight - offsetOf(ms, zone);
  return midnight - offsetOf(guess, zone);
}

/** Whether this browser knows the zone. */
export function isZone(zone: string): boolean {
  try {
    formatter("en-GB", zone, false);
    return true;
  } catch {
    return false;
  }
}

const formatters = new Map<string, Intl.DateTimeFormat>();

// Cached: creating one takes a hundred times as long as using it.
function formatter(locale: string, zone: Zone, named: boolean): Intl.DateTimeFormat {
  const key = `${locale} ${zone} ${named ? "named" : ""}`;
  let found = formatters.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat(locale, {
      ...(zone === "local" ? {} : { timeZone: zone === "utc" ? "UTC" : zone }),
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      ...(named ? { timeZoneName: "short" } : {}),
    });
    formatters.set(key, found);
  }
  return found;
}
