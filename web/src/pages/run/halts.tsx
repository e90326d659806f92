// The pauses of the run, and its wait for a worker: a hollow band behind all rows, with a label and the reason in the
// axis; a list on narrow screens, which have no axis.
import { formatDuration } from "../../model/durations";
import type { Halt } from "../../model/records";
import { haltSegments } from "../../model/step-rows";
import type { TimeScale } from "../../model/time-scale";
import { formatTime } from "../../model/times";
import { prefs } from "../../state/prefs";
import { Icon } from "../../ui/icon";
import { placeOf, type Place } from "./geometry";

interface Drawn {
  halts: readonly Halt[];
  scale: TimeScale;
  nowMs: number;
}

/** The minimum width for the label. */
const WORD_FROM_PX = 48;
const NAMES = { paused: "paused", queue: "waited", loading: "loading" };

export function HaltBands({ halts, scale, nowMs }: Drawn) {
  return (
    <div class="halt-bands" aria-hidden="true">
      {placed({ halts, scale, nowMs }).map(({ key, place, halt }) => (
        <span key={key} data-kind={halt.kind} class={`halt-band${place.open ? " is-open" : ""}`} style={styleOf(place)} />
      ))}
    </div>
  );
}

export function HaltNames({ halts, scale, nowMs }: Drawn) {
  return (
    <>
      {placed({ halts, scale, nowMs }).map(({ key, place, halt, start, end }) => {
        const words = wordsOf(halt, end === null ? "" : ` for ${formatDuration(end - start)}`);
        return (
          <span
            key={key}
            data-kind={halt.kind}
            class={`halt-name${place.open ? " is-open" : ""}`}
            style={styleOf(place)}
            role="img"
            aria-label={words}
            title={`${words}\n${spanText(start, end)}`}
          >
            {place.width >= WORD_FROM_PX ? NAMES[halt.kind] : ""}
          </span>
        );
      })}
    </>
  );
}

/** Describes the bands in text. */
export function HaltList({ halts, nowMs }: Omit<Drawn, "scale">) {
  if (halts.length === 0) return null;
  return (
    <ul class="halt-list" aria-label="Pauses and waits">
      {haltSegments(halts).flatMap(({ start, end }, index) => {
        const halt = halts[index];
        if (halt === undefined) return [];
        const lasted = `${formatDuration(Math.max(0, (end ?? nowMs) - start))}${end === null ? " so far" : ""}`;
        return [
          <li key={halt.started_at} data-kind={halt.kind}>
            <Icon name={halt.kind === "paused" ? "pause" : "clock"} />
            <span>
              {wordsOf(halt, ` for ${lasted}`)} <span class="dim halt-span">{spanText(start, end)}</span>
            </span>
          </li>,
        ];
      })}
    </ul>
  );
}

function wordsOf(halt: Halt, lasted: string): string {
  if (halt.kind === "loading") return "Earlier steps are being loaded";
  if (halt.kind === "queue") return `Waited${lasted} for a worker`;
  return `Paused${lasted}${halt.reason === null ? "" : `: ${halt.reason}`}`;
}

function placed({ halts, scale, nowMs }: Drawn) {
  return haltSegments(halts).flatMap((segment, index) => {
    const halt = halts[index];
    const place = placeOf(segment, scale, nowMs);
    if (place === null || halt === undefined) return [];
    return [{ key: halt.started_at, place, halt, start: segment.start, end: segment.end }];
  });
}

function styleOf(place: Place) {
  return place.open
    ? { left: `${place.left}px`, width: "", "--from": `${place.left}px` }
    : { left: `${place.left}px`, width: `${place.width}px`, "--from": "" };
}

function spanText(start: number, end: number | null): string {
  const zone = prefs.value.zone;
  const from = formatTime(start, zone, "datetime");
  return end === null ? `since ${from}` : `${from} to ${formatTime(end, zone, "datetime")}`;
}
