// One row: name, state and bars.
import type { Row } from "../../model/step-rows";
import { describeRow } from "../../model/step-rows";
import { iconOf } from "../../model/statuses";
import type { TimeScale } from "../../model/time-scale";
import { Icon } from "../../ui/icon";
import { memo } from "../../ui/memo";
import { rowNote } from "./notes";
import { notePlace, spanOfRow } from "./geometry";
import { Segments, Strip } from "./segments";

export interface RowProps {
  row: Row;
  index: number;
  top: number | null;
  scale: TimeScale;
  selected: boolean;
  /** Whether Tab focuses this row. */
  focusable: boolean;
  nowMs: number;
  /** The maximum number of attempts, if known. */
  maximum: number | null;
  /** When the run was created. */
  bornMs: number;
  onToggle: (row: Row) => void;
  onSelect: (row: Row) => void;
}

export const RowView = memo(function RowView(props: RowProps) {
  const { row, index, top, scale, selected, focusable, nowMs, maximum, bornMs } = props;
  const place = {
    ...(top !== null ? { transform: `translateY(${top}px)` } : { transform: "none" }),
    "--level": String(row.level),
  };
  return (
    <div
      class={`timeline-row${row.discarded ? " is-discarded" : ""}`}
      role="row"
      data-key={row.key}
      data-state={row.state}
      aria-level={row.level}
      aria-rowindex={index + 2}
      aria-setsize={row.setSize}
      aria-posinset={row.posInSet}
      aria-expanded={row.expanded ?? undefined}
      aria-selected={selected}
      aria-label={describeRow(row, nowMs)}
      tabIndex={focusable ? 0 : -1}
      style={place}
      onClick={() => props.onSelect(row)}
    >
      <Label row={row} onToggle={props.onToggle} />
      <Bars row={row} scale={scale} nowMs={nowMs} maximum={maximum} bornMs={bornMs} />
    </div>
  );
});

function Label({ row, onToggle }: { row: Row; onToggle: (row: Row) => void }) {
  const toggle = (event: MouseEvent) => {
    event.stopPropagation();
    onToggle(row);
  };
  return (
    <span class="row-label" role="rowheader">
      {row.expanded !== null ? (
        <button
          type="button"
          class="row-toggle"
          tabIndex={-1}
          aria-label={row.expanded ? "Collapse" : "Expand"}
          onClick={toggle}
        >
          <Icon name={row.expanded ? "chevron-down" : "chevron-right"} />
        </button>
      ) : (
        <span class="row-toggle-space" />
      )}
      <span class="row-icon" title={row.state}>
        <Icon name={iconOf(row.state, row.step?.kind === "child")} />
      </span>
      <span class="row-name" title={row.label}>
        {row.label}
      </span>
      {row.won ? (
        <span class="row-flag" title="Won the race">
          <Icon name="flag" label="won" />
        </span>
      ) : null}
      {row.kind === "group" ? <span class="row-extra">{`${row.done}/${row.steps}`}</span> : null}
      {row.kind === "before" ? <span class="row-extra">{row.steps}</span> : null}
      {row.attempts > 1 && row.kind !== "group" && row.kind !== "fold" ? (
        <span class="row-extra">{`×${row.attempts}`}</span>
      ) : null}
    </span>
  );
}

type BarsProps = Pick<RowProps, "row" | "scale" | "nowMs" | "maximum" | "bornMs">;

function Bars({ row, scale, nowMs, maximum, bornMs }: BarsProps) {
  const note = rowNote(row, nowMs, maximum, bornMs);
  const span = spanOfRow(row, scale, nowMs);
  // what is not in this scale has a note at its begin
  const at = note.text === "" ? null : notePlace(note.text, span ?? [0, 0], scale.width, row.segments);
  return (
    <span class="row-bars" role="gridcell">
      {row.kind === "fold" ? (
        <Strip row={row} scale={scale} nowMs={nowMs} />
      ) : (
        <Segments row={row} scale={scale} nowMs={nowMs} />
      )}
      {at !== null ? (
        <span
          class={`row-note${note.failing ? " is-failing" : ""}${at.over === true ? " is-over" : ""}`}
          style={{
            left: at.before ? "" : `${at.x}px`,
            right: at.before ? `${at.x}px` : "",
            maxWidth: `${at.most}px`,
          }}
        >
          {note.text}
        </span>
      ) : null}
      <span class="row-took">{note.text}</span>
    </span>
  );
}
