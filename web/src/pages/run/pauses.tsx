// The pauses of the run: a hollow band behind all rows, with a label and the reason in the axis; a list on narrow
// screens, which have no axis.
import type { PauseView } from "../../api/types";
import { formatDuration } from "../../model/durations";
import { pauseSegments } from "../../model/step-rows";
import type { TimeScale } from "../../model/time-scale";
import { formatTime } from "../../model/times";
import { prefs } from "../../state/prefs";
import { Icon } from "../../ui/icon";
import { placeOf, type Place } from "./geometry";

interface Drawn {
  pauses: readonly PauseView[];
  scale: TimeScale;
  nowMs: number;
}

/** The minimum width for the label. */
const WORD_FROM_PX = 48;

export function PauseBands({ pauses, scale, nowMs }: Drawn) {
  return (
    <div class="pause-bands" aria-hidden="true">
      {placed({ pauses, scale, nowMs }).map(({ key, place }) => (
        <span key={key} class={`pause-band${place.open ? " is-open" : ""}`} style={styleOf(place)} />
      ))}
    </div>
  );
}

export function PauseNames({ pauses, scale, nowMs }: Drawn) {
  return (
    <>
      {placed({ pauses, scale, nowMs }).map(({ key, place, pause, start, end }) => {
        const words = wordsOf(pause, end === null ? "" : ` for ${formatDuration(end - start)}`);
        return (
          <span
            key={key}
            class={`pause-name${place.open ? " is-open" : ""}`}
            style={styleOf(place)}
            role="img"
            aria-label={words}
            title={`${words}\n${spanText(start, end)}`}
          >
            {place.width >= WORD_FROM_PX ? "paused" : ""}
          </span>
        );
      })}
    </>
  );
}

/** Describes the bands in text. */
export function PauseList({ pauses, nowMs }: Omit<Drawn, "scale">) {
  if (pauses.length === 0) return null;
  return (
    <ul class="pause-list" aria-label="Pauses">
      {pauseSegments(pauses).flatMap(({ start, end }, index) => {
        const pause = pauses[index];
        if (pause === undefined) return [];
        const lasted = `${formatDuration(Math.max(0, (end ?? nowMs) - start))}${end === null ? " so far" : ""}`;
        return [
          <li key={pause.started_at}>
            <Icon name="pause" />
            <span>
              {wordsOf(pause, ` for ${lasted}`)} <span class="dim pause-span">{spanText(start, end)}</span>
            </span>
          </li>,
        ];
      })}
    </ul>
  );
}

function wordsOf(pause: PauseView, lasted: string): string {
  return `Paused${lasted}${pause.reason === null ? "" : `: ${pause.reason}`}`;
}

function placed({ pauses, scale, nowMs }: Drawn) {
  return pauseSegments(pauses).flatMap((segment, index) => {
    const pause = pauses[index];
    const place = placeOf(segment, scale, nowMs);
    if (place === null || pause === undefined) return [];
    return [{ key: pause.started_at, place, pause, start: segment.start, end: segment.end }];
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
