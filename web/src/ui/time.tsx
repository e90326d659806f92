import { useMemo } from "preact/hooks";
import { ageOf, formatDuration, shortAgeOf, speakDuration, untilOf } from "../model/durations";
import { formatTime, toUtc, type TimeStyle } from "../model/times";
import { copyText } from "./copy";
import { surroundings } from "./surroundings";

interface TimeProps {
  readonly ms: number;
  readonly style?: TimeStyle;
}

/** Copying the displayed time copies the exact time in UTC. */
function copyUtc(ms: number): (event: ClipboardEvent) => void {
  return (event) => {
    event.clipboardData?.setData("text/plain", toUtc(ms));
    event.preventDefault();
  };
}

/** A time in the selected zone, with its name; the tooltip and copying give UTC. */
export function Time({ ms, style = "datetime" }: TimeProps) {
  return (
    <time
      class="time"
      dateTime={toUtc(ms)}
      title={toUtc(ms)}
      onCopy={copyUtc(ms)}
      onDblClick={() => void copyText(toUtc(ms))}
    >
      {formatTime(ms, surroundings.zone.value, style)}
    </time>
  );
}

export function Duration({ ms }: { readonly ms: number }) {
  const shown = Math.max(0, ms);
  return (
    <span class="duration" title={speakDuration(shown)}>
      {formatDuration(shown)}
    </span>
  );
}

const HOUR_MS = 3_600_000;

/** How long ago, by the server's clock; after a day the time itself, unless `short`. */
export function Since({ ms, short = false }: { readonly ms: number; readonly short?: boolean }) {
  const recent = Math.abs(surroundings.minute.value - ms) < HOUR_MS;
  const now = recent ? surroundings.second.value : surroundings.minute.value;
  const then = Math.max(now, ms);
  return <Relative ms={ms} text={short ? shortAgeOf(ms, then) : ageOf(ms, then, surroundings.zone.value)} />;
}

/** How long until then. */
export function Until({ ms }: { readonly ms: number }) {
  return <Relative ms={ms} text={untilOf(ms, surroundings.second.value, surroundings.zone.value)} />;
}

/** How long it has lasted: updated every second. */
export function Elapsed({ since }: { readonly since: number }) {
  return <Duration ms={surroundings.second.value - since} />;
}

function Relative({ ms, text }: { readonly ms: number; readonly text: string }) {
  const zone = surroundings.zone.value;
  // a list has a hundred of them, each updated every second
  const fixed = useMemo(
    () => ({ dateTime: toUtc(ms), title: `${formatTime(ms, zone, "datetime")}\n${toUtc(ms)}`, onCopy: copyUtc(ms) }),
    [ms, zone],
  );
  return (
    <time class="time" {...fixed}>
      {text}
    </time>
  );
}
