// The parts of a row. They differ in shape, as colours alone are too similar.
import { densityOf } from "../../model/intervals";
import { hasFailed, stepIntervals, type Row, type Segment } from "../../model/step-rows";
import type { StateName } from "../../model/statuses";
import type { TimeScale } from "../../model/time-scale";
import { Icon } from "../../ui/icon";
import { Density } from "./density";
import { MARK_PX, placeOf, type Place } from "./geometry";

const ENVELOPE_FROM_PX = 24;

interface Drawn {
  row: Row;
  scale: TimeScale;
  nowMs: number;
}

export function Segments({ row, scale, nowMs }: Drawn) {
  const grouped = row.members.length > 0;
  return (
    <>
      {row.segments.map((segment, index) => {
        const place = placeOf(segment, scale, nowMs);
        return place === null ? null : (
          <Part key={index} segment={segment} place={place} scale={scale} group={grouped ? row : null} />
        );
      })}
    </>
  );
}

function Part({
  segment,
  place,
  scale,
  group,
}: {
  segment: Segment;
  place: Place;
  scale: TimeScale;
  group: Row | null;
}) {
  const grouped = group !== null;
  const shape = grouped ? "group" : segment.shape;
  // a step that waits for a retry is drawn up to its retry, not up to now
  const next = !grouped && segment.mark === "next" && segment.until !== undefined ? markX(segment.until, scale) : null;
  const isOpen = place.open && next === null;
  const width = next === null ? place.width : Math.max(0, next - place.left);
  const className = `seg seg-${shape}${isOpen ? " is-open" : ""}${segment.mark === "lost" ? " is-lost" : ""}`;
  const style = isOpen
    ? { left: `${place.left}px`, width: "", "--from": `${place.left}px` }
    : { left: `${place.left}px`, width: `${width}px`, "--from": "" };
  return (
    <>
      <span
        class={className}
        data-state={group === null ? segment.state : stateOfBar(group)}
        style={group === null ? style : { ...style, "--failed": failedShare(group) }}
      >
        {shape === "signal" && place.width >= ENVELOPE_FROM_PX ? <Icon name="envelope" /> : null}
        {place.breaks.map((x) => (
          <span key={x} class="seg-break" style={{ left: `${x}px` }} />
        ))}
      </span>
      {grouped ? null : <Mark segment={segment} place={place} scale={scale} />}
      {grouped || segment.workers === undefined ? null : (
        <span
          class="seg-handover"
          style={{ left: `${place.left}px` }}
          title={`${segment.workers[0]}, then ${segment.workers[1]}`}
        />
      )}
    </>
  );
}

function Mark({ segment, place, scale }: { segment: Segment; place: Place; scale: TimeScale }) {
  if (segment.mark === "arrival")
    return <span class="mark mark-arrival" style={{ left: `${place.left + place.width}px` }} />;
  if (segment.mark === "timeout")
    return <span class="mark mark-timeout" style={{ left: `${place.left + place.width}px` }} />;
  if (segment.until === undefined) return null;
  const x = markX(segment.until, scale);
  if (x < 0 || x >= scale.width) return null;
  if (segment.mark === "next") return <span class="mark mark-next" style={{ left: `${x}px` }} />;
  return segment.shape === "signal" && place.open ? (
    <span class="mark mark-timeout" style={{ left: `${x}px` }} />
  ) : null;
}

/** Within the painted area; at the end of the scale if it is later. */
function markX(ms: number, scale: TimeScale): number {
  const x = scale.toX(ms);
  return x > scale.width ? scale.width : Math.min(x, scale.width - MARK_PX);
}

/** Of a row with many steps: some failures do not make all of it red, they have a share of it. */
function stateOfBar(row: Row): StateName {
  return row.state === "failed" && row.failed < row.steps ? "completed" : row.state;
}

const LEAST_SHARE = 0.15;

function failedShare(row: Row): string {
  const share = row.failed / row.steps;
  return share > 0 && share < 1 ? `${Math.round(Math.max(LEAST_SHARE, share) * 100)}%` : "0%";
}

const STRIP_BUCKETS = 160;

/** Many steps as one strip. */
export function Strip({ row, scale, nowMs }: Drawn) {
  const place = (ms: number) => scale.toX(ms);
  const all = densityOf(stepIntervals(row.members, nowMs), place, scale.width, STRIP_BUCKETS);
  const failed = densityOf(stepIntervals(row.members.filter(hasFailed), nowMs), place, scale.width, STRIP_BUCKETS);
  return <Density counts={all} failed={failed} state={stateOfBar(row)} />;
}
