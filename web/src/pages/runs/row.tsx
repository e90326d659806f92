import type { RunView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { awaitsChild, stateOfRun } from "../../model/statuses";
import { toMs } from "../../model/times";
import { href } from "../../state/route";
import type { RunRow } from "../../state/runs-store";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Checkbox } from "../../ui/field";
import { memo } from "../../ui/memo";
import { Menu } from "../../ui/menu";
import { ShortId } from "../../ui/short-id";
import { Since } from "../../ui/time";
import { countStates, mayHaveChildren, type Line } from "./folding";
import { Doing, Labels, Took } from "./columns";
import { itemsOf, type Ask } from "./run-actions";

export interface RowContext {
  readonly selected: ReadonlySet<string>;
  readonly open: ReadonlySet<string>;
  readonly onSelect: (id: string, on: boolean, range: boolean) => void;
  readonly onOpen: (id: string) => void;
  readonly onAsk: (ask: Ask) => void;
  readonly hrefWith: (name: "label" | "workflow" | "version", value: string) => string;
  readonly mayAct: boolean;
}

interface RunLineProps {
  readonly row: RunRow;
  readonly level: 0 | 1;
  readonly childRows: number;
  readonly context: RowContext;
}

/** One run. Rendered when this run changes, not with the list. */
export const RunLine = memo(function RunLine({ row, level, childRows, context }: RunLineProps) {
  const run = row.run.value;
  const selected = context.selected.has(run.run_id);
  return (
    <tr
      role="row"
      class={`runs-row ${row.gone.value ? "runs-gone" : ""}`}
      data-run={run.run_id}
      data-level={level}
      aria-selected={selected}
      title={row.gone.value ? "No longer matches the filter" : undefined}
    >
      <td role="cell" class="runs-select" onClick={(event) => onShift(event, run, selected, context)}>
        <Checkbox
          checked={selected}
          label={`Select ${run.workflow_id}`}
          onCheck={(on) => context.onSelect(run.run_id, on, false)}
        />
      </td>
      <td role="cell" class="runs-status">
        <Badge state={stateOfRun(run)} child={awaitsChild(run)} />
      </td>
      <td role="cell" class="runs-workflow">
        <A href={context.hrefWith("workflow", run.workflow)} title={`Show only ${run.workflow}`} tabIndex={-1}>
          {run.workflow}
        </A>
      </td>
      <td role="cell" class="runs-id">
        <span class="runs-id-cell">
          {mayHaveChildren(run, childRows) ? (
            <Fold run={run} childRows={childRows} context={context} />
          ) : (
            <span class="runs-fold-space" />
          )}
          <A href={href(`/runs/${run.run_id}`)} class="runs-link mono" title={run.run_id}>
            <ShortId id={run.workflow_id} />
          </A>
          {childRows > 0 && <span class="runs-children dim">{`${groupThousands(childRows)} ${childRows === 1 ? "child" : "children"}`}</span>}
          {run.parent_run_id !== null && level === 0 && (
            <A href={href(`/runs/${run.parent_run_id}`)} class="runs-parent dim" title={run.parent_run_id} tabIndex={-1}>
              child
            </A>
          )}
        </span>
      </td>
      <td role="cell" class="runs-what">
        <Doing run={run} />
      </td>
      <td role="cell" class="runs-number" data-name="attempt">
        {run.attempt > 1 ? run.attempt : <span class="dim">1</span>}
      </td>
      <td role="cell" class="runs-number" data-name="age">
        <Since short ms={toMs(run.created_at)} />
      </td>
      <td role="cell" class="runs-number" data-name="took">
        <Took run={run} />
      </td>
      <td role="cell" class="runs-version" data-name="version">
        {run.version ?? <span class="dim">–</span>}
      </td>
      <td role="cell" class="runs-labels">
        <Labels run={run} href={(label) => context.hrefWith("label", label)} />
      </td>
      <td role="cell" class="runs-menu">
        <Menu label={`Actions for ${run.workflow_id}`} icon="menu" iconOnly kind="quiet" align="end" items={() => itemsOf(run, context.mayAct, context.onAsk)} />
      </td>
    </tr>
  );
});

/** Shift and click select a range, as in other lists. */
function onShift(event: MouseEvent, run: RunView, selected: boolean, context: RowContext): void {
  if (!event.shiftKey || selected) return;
  event.preventDefault();
  context.onSelect(run.run_id, true, true);
}

function Fold({ run, childRows, context }: { run: RunView; childRows: number; context: RowContext }) {
  const open = context.open.has(run.run_id);
  const word = childRows === 0 ? "children" : childRows === 1 ? "1 child" : `${childRows} children`;
  return (
    <Button
      kind="quiet"
      class="runs-fold"
      icon={open ? "chevron-down" : "chevron-right"}
      expanded={open}
      label={`${open ? "Hide" : "Show"} ${word} of ${run.workflow_id}`}
      title={word}
      onClick={() => context.onOpen(run.run_id)}
    />
  );
}

/** The children of a run that is further down the list. */
export function GroupLine({ line, context }: { line: Line & { kind: "group" }; context: RowContext }) {
  const open = context.open.has(line.parent);
  const types = [...new Set(line.rows.map((row) => row.run.peek().workflow))];
  return (
    <tr role="row" class="runs-row runs-group" data-group={line.parent}>
      <td role="cell" class="runs-select" />
      <td role="cell" colSpan={10} class="runs-group-cell">
        <Button
          kind="quiet"
          class="runs-fold"
          icon={open ? "chevron-down" : "chevron-right"}
          expanded={open}
          onClick={() => context.onOpen(line.parent)}
        >
          {types.join(", ")} × {line.rows.length}
        </Button>
        <span class="dim">
          {countStates(line.rows)} · children of{" "}
          <A href={href(`/runs/${line.parent}`)} class="mono">
            {line.parent.slice(0, 13)}…
          </A>
        </span>
      </td>
    </tr>
  );
}
