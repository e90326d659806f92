// The steps of the run over time.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TimelineStepView, WholeRunView } from "../../api/types";
import { axisMarks } from "../../model/axis-marks";
import { buildRows, failuresIn, revealStep, type Row } from "../../model/step-rows";
import { isEnded } from "../../model/statuses";
import { toMs, zoneName } from "../../model/times";
import { secondNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { setQuery } from "../../state/route";
import type { ForgottenSteps } from "../../state/forgotten-steps";
import type { ChildRuns } from "../../state/run-children";
import type { RunStore } from "../../state/run-store";
import { Empty } from "../../ui/empty";
import { Axis } from "./axis";
import { openChildren } from "./children";
import { openDiscarded, useDiscarded } from "./forgotten";
import { countText, stepsIn } from "./notes";
import { Overview } from "./overview";
import { HaltBands, HaltList, HaltNames } from "./halts";
import { RowView } from "./row";
import { RowsBody, scrollToRow } from "./rows-body";
import { useNarrow, useNowLine, useScales, useWidth } from "./scale";
import { selectedKey } from "./selection";
import { Toolbar } from "./toolbar";
import { useHalts, useRowsView } from "./timeline-data";
import { useTimelineKeys } from "./timeline-keys";
import { select, setZoom, toggleRow, view } from "./view";
import { useZoom } from "./zoom";

const HEAD_PX = 32;
/** The labels of pauses and waits have a line of their own. */
const HALTS_PX = 14;
const OVERVIEW_FROM = 200;

interface TimelineProps {
  store: RunStore;
  run: WholeRunView;
  childRuns: ChildRuns;
  forgotten: ForgottenSteps;
}

export function Timeline({ store, run, childRuns, forgotten }: TimelineProps) {
  const steps = store.steps.value;
  const box = useRef<HTMLDivElement>(null);
  const wrap = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(false);
  const boxPx = useWidth(box);
  const narrow = useNarrow();
  const rowPx = narrow ? 44 : prefs.value.density === "compact" ? 24 : 28;
  const labelsPx = narrow ? 0 : 230;
  const halts = useHalts(store, run);
  const headPx = halts.length > 0 ? HEAD_PX + HALTS_PX : HEAD_PX;
  const discarded = useDiscarded(store, forgotten);
  const rowsView = useRowsView(store, childRuns, discarded);
  const rows = useMemo(() => buildRows(rowsView.steps, rowsView), [rowsView]);
  const inside = useMemo(
    () => [...openChildren(rows, childRuns, childRuns.all.value), ...openDiscarded(discarded, rowsView.toggled)],
    [rows, childRuns.all.value],
  );
  const live = !isEnded(run.status);
  const bornMs = run.forked_from === null ? 0 : toMs(run.created_at);
  const { whole, shown } = useScales(run, steps, inside, halts, Math.max(120, boxPx - labelsPx));
  useNowLine(wrap, shown, live);
  const maximum = maximumOf(store);
  // texts with a countdown are drawn every second, others when they change
  const counts = live && rows.length < 2_000 && steps.some(isCounting);
  const nowMs = counts ? secondNow.value : rowsView.now;
  const selected = selectedKey();
  const [focused, setFocused] = useState<string | null>(null);
  const at = indexOf(rows, focused ?? selected);
  const failures = useMemo(() => failuresIn(steps), [steps]);
  const reveal = (stepId: string) => {
    const toggled = revealStep(rowsView.steps, rowsView, stepId);
    setQuery({ row: [...toggled], step: stepId, in: null, q: null, only: null, kind: null }, { replace: true });
    setFocused(stepId);
  };
  const focus = (index: number) => {
    const row = rows[Math.max(0, Math.min(index, rows.length - 1))];
    if (row === undefined) return;
    setFocused(row.key);
    if (row.step !== null && row.kind !== "group" && row.kind !== "fold") choose(row, store.runId, true);
    if (box.current !== null) scrollToRow(box.current, rows.indexOf(row), rowPx, headPx);
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(row.key)}"]`)?.focus({ preventScroll: true }),
    );
  };
  const nextFailure = (direction: 1 | -1) => {
    const next = failureFrom(failures, view.peek().within === null ? view.peek().step : null, steps, direction);
    if (next !== null) reveal(next);
  };
  const zoom = useZoom({ box, shown, whole, begin: toMs(run.created_at) });
  useTimelineKeys({
    rows,
    at,
    focus,
    nextFailure,
    zoom: zoom.by,
    follow: () => setFollowing((was) => !was),
    toggle: (row) => toggle(row, childRuns, forgotten),
  });
  useScrollToSelected(box, rows, selected, rowPx, headPx);
  useEffect(() => {
    if (following && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [following, rows]);
  if (steps.length === 0 && discarded.length === 0) return <NoSteps status={run.status} />;
  return (
    <div>
      <Toolbar
        count={countText(stepsIn(rows), rowsView.steps.length, store.complete.value)}
        failures={failures.length}
        live={live}
        following={following}
        onFollow={() => setFollowing(!following)}
        onZoom={zoom.by}
        onNextFailure={nextFailure}
      />
      {narrow ? <HaltList halts={halts} nowMs={nowMs} /> : null}
      {rows.length >= OVERVIEW_FROM ? (
        <Overview steps={steps} scale={whole} shown={shown} begin={toMs(run.created_at)} />
      ) : null}
      <div
        class="timeline-wrap"
        ref={wrap}
        style={{ "--bars": `${Math.ceil(shown.width)}px`, "--row": `${rowPx}px`, "--head": `${headPx}px` }}
      >
        <div
          class="timeline"
          ref={box}
          role="treegrid"
          aria-label="Steps"
          aria-rowcount={rows.length + 1}
          onScroll={(event) => wrap.current?.style.setProperty("--scroll-x", `${event.currentTarget.scrollLeft}px`)}
          onWheel={zoom.wheel}
        >
          <div class="timeline-head" role="row" aria-rowindex={1}>
            <span role="columnheader">
              Step{" "}
              <span class="zone" title="Time zone of the axis">
                {zoneName(shown.start, prefs.value.zone)}
              </span>
            </span>
            <span role="columnheader" aria-label="Time">
              <Axis
                scale={shown}
                marks={axisMarks(steps, store.retries.value)}
                onZoom={(from, to) => setZoom([from - toMs(run.created_at), to - toMs(run.created_at)])}
              >
                <HaltNames halts={halts} scale={shown} nowMs={nowMs} />
              </Axis>
            </span>
          </div>
          <RowsBody
            count={rows.length}
            rowPx={rowPx}
            headPx={headPx}
            box={box}
            keyOf={(index) => rows[index]?.key ?? ""}
            render={(index, top) => {
              const row = rows[index];
              return row === undefined ? null : (
                <RowView
                  row={row}
                  index={index}
                  top={top}
                  scale={shown}
                  selected={row.key === selected}
                  focusable={index === Math.max(0, at)}
                  nowMs={nowMs}
                  bornMs={bornMs}
                  maximum={maximum?.step === row.step?.step_id ? (maximum?.attempts ?? null) : null}
                  onToggle={(each) => toggle(each, childRuns, forgotten)}
                  onSelect={(each) => {
                    setFocused(each.key);
                    if (each.kind === "step" || each.kind === "child") choose(each, store.runId, false);
                    else toggle(each, childRuns, forgotten);
                  }}
                />
              );
            }}
          />
        </div>
        <HaltBands halts={halts} scale={shown} nowMs={nowMs} />
        {live ? <div class="now-line" aria-hidden="true" /> : null}
      </div>
    </div>
  );
}

function choose(row: Row, runId: string, replace: boolean): void {
  if (row.step === null) return;
  const id = row.step.step_id;
  const within = row.discarded ? row.key.slice(0, -id.length - 1) : row.runId === runId ? null : row.runId;
  select(id, within, { replace });
}

function toggle(row: Row, childRuns: ChildRuns, forgotten: ForgottenSteps): void {
  if (row.kind === "more" && row.discarded) forgotten.again();
  else if (row.kind === "more") void childRuns.more(row.childRunId);
  else if (row.expanded !== null) toggleRow(row.key);
}

function indexOf(rows: readonly Row[], key: string | null): number {
  return key === null
    ? 0
    : Math.max(
        0,
        rows.findIndex((row) => row.key === key),
      );
}

/** Whether the text beside the bar counts time. */
function isCounting(step: TimelineStepView): boolean {
  return step.status === "running" || step.status === "pending";
}

function maximumOf(store: RunStore): { step: string; attempts: number } | null {
  const facts = store.explanation.value?.facts;
  const step = facts?.["step"];
  const attempts = Number(facts?.["maximum_attempts"] ?? 0);
  return step !== undefined && attempts > 0 ? { step, attempts } : null;
}

/** The next failure after the selected step, wrapping around. */
function failureFrom(
  failures: readonly string[],
  from: string | null,
  steps: readonly TimelineStepView[],
  direction: 1 | -1,
): string | null {
  if (failures.length === 0) return null;
  const known = from === null ? -1 : failures.indexOf(from);
  if (known >= 0) return failures[(known + direction + failures.length) % failures.length] ?? null;
  const place = new Map(steps.map((step, index) => [step.step_id, index]));
  const here = from === null ? -1 : (place.get(from) ?? -1);
  const after = failures.filter((id) => (place.get(id) ?? 0) > here);
  return direction === 1
    ? (after[0] ?? failures[0] ?? null)
    : (failures[failures.length - after.length - 1] ?? failures.at(-1) ?? null);
}

/** Scrolls to a linked step, or the next failure, once its row exists. */
function useScrollToSelected(
  box: { current: HTMLDivElement | null },
  rows: readonly Row[],
  selected: string | null,
  rowPx: number,
  headPx: number,
): void {
  const done = useRef<string | null>(null);
  useEffect(() => {
    if (selected === null || done.current === selected || box.current === null) return;
    const index = rows.findIndex((row) => row.key === selected);
    if (index < 0) return;
    done.current = selected;
    scrollToRow(box.current, index, rowPx, headPx);
  }, [rows, selected]);
}

function NoSteps({ status }: { status: string }) {
  return (
    <Empty title="No steps yet">
      {status === "pending"
        ? "No worker has picked up the run. The line above says why."
        : "The workflow has not called ctx.step, ctx.sleep or ctx.wait_for."}
    </Empty>
  );
}
