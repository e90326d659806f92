// /runs/{a}/compare/{b}: the differences between two runs.
import { useMemo, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { StepView } from "../../api/types";
import { alignSteps, type AlignedStep } from "../../model/align";
import { diffLines } from "../../model/diff";
import { formatDuration } from "../../model/durations";
import { pretty } from "../../model/json-text";
import { segmentsOf } from "../../model/step-rows";
import { stateOfRun, stateOfStep, wordOf } from "../../model/statuses";
import { ticksOf, type TimeScale } from "../../model/time-scale";
import { toMs } from "../../model/times";
import { serverNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { useResource } from "../../state/resource";
import { route, setQuery } from "../../state/route";
import { RAW_FIELDS } from "../../state/run-store";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Chip } from "../../ui/chip";
import { Diff } from "../../ui/diff";
import { Empty } from "../../ui/empty";
import { ErrorBox } from "../../ui/error-box";
import { Skeleton } from "../../ui/skeleton";
import { isOther, loadBoth, sharedScale, type Side, useOutputs } from "./compare-data";
import { placeOf } from "./geometry";
import { runHref, short } from "./header";
import { textOf } from "./values";
import { useWidth } from "./scale";

export function ComparePage() {
  const [, a = "", , b] = route.value.segments;
  const both = useResource((abort) => loadBoth(a, b ?? null, abort), [a, b]);
  if (both.error !== null) return <ErrorBox page problem={both.error} onRetry={both.reload} />;
  if (both.value === null) return <Skeleton rows={8} />;
  const [left, right] = both.value;
  if (right === null) {
    return (
      <Empty title="Nothing to compare with">
        <p>
          No other run of <b>{left.run.workflow}</b> has completed. To compare with a specific run, add /compare/
          and its id to the address of this run.
        </p>
      </Empty>
    );
  }
  return <Compared a={left} b={right} />;
}

function Compared({ a, b }: { a: Side; b: Side }) {
  const rows = useMemo(() => alignSteps(a.steps, b.steps, serverNow()), [a, b]);
  const only = route.value.query.get("only") === "different";
  const outputs = useOutputs(a, b);
  const differs = (row: AlignedStep) => !row.same || isOther(outputs, row.stepId);
  const shown = only ? rows.filter(differs) : rows;
  const box = useRef<HTMLDivElement>(null);
  const width = Math.max(120, useWidth(box) - 16);
  const scale = useMemo(() => sharedScale(a, b, width), [a, b, width]);
  const ticks = ticksOf(scale, { zone: prefs.value.zone, relativeTo: 0, spacingPx: 90 });
  return (
    <div class="run-page">
      <header class="stack">
        <h1>{`Compare two runs of ${a.run.workflow}`}</h1>
        <SideHead side={a} name="A" />
        <SideHead side={b} name="B" />
        <p class="row">
          <Chip selected={only} onClick={() => setQuery({ only: only ? null : "different" }, { replace: true })}>
            Differences only
          </Chip>
          <span class="dim">{`${rows.filter(differs).length} of ${rows.length} steps differ`}</span>
        </p>
      </header>
      <div class="compare-scroll">
        <table class="compare" aria-label="Steps of both runs">
          <thead>
            <tr>
              <th>Step</th>
              <th>A</th>
              <th>B</th>
              <th class="num">Difference</th>
              <th class="compare-bars">
                <div ref={box} class="compare-axis">
                  {ticks.map((tick) => (
                    <span key={tick.ms} class="tick" style={{ left: `${tick.x}px` }}>
                      {tick.label}
                    </span>
                  ))}
                </div>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <CompareRow key={row.stepId} row={row} a={a} b={b} scale={scale} other={isOther(outputs, row.stepId)} />
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function SideHead({ side, name }: { side: Side; name: string }) {
  const { run } = side;
  return (
    <p class="row">
      <b>{name}</b>
      <A href={runHref(run.run_id)}>
        <code>{run.workflow_id}</code>
      </A>
      {run.workflow_id !== run.run_id ? <code class="dim">{short(run.run_id)}</code> : null}
      <Badge state={stateOfRun(run)} word={wordOf(stateOfRun(run))} />
      <span class="dim">{`version ${run.version ?? "none"}`}</span>
      {run.finished_at !== null ? (
        <span class="dim">{`took ${formatDuration(toMs(run.finished_at) - toMs(run.created_at))}`}</span>
      ) : null}
    </p>
  );
}

function CompareRow({
  row,
  a,
  b,
  scale,
  other,
}: {
  row: AlignedStep;
  a: Side;
  b: Side;
  scale: TimeScale;
  other: boolean;
}) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <tr class={row.same && !other ? "" : "is-different"} data-step={row.stepId}>
        <th scope="row">
          <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
            {row.stepId}
          </button>
          {other ? <span class="compare-other">output differs</span> : null}
        </th>
        <td>
          <StepWord step={row.a} took={row.tookA} />
        </td>
        <td>
          <StepWord step={row.b} took={row.tookB} />
        </td>
        <td class="num">{differenceText(row)}</td>
        <td class="compare-bars" aria-hidden="true">
          <TwoBars step={row.a} begin={toMs(a.run.created_at)} scale={scale} />
          <TwoBars step={row.b} begin={toMs(b.run.created_at)} scale={scale} />
        </td>
      </tr>
      {open ? (
        <tr>
          <td colSpan={5}>
            <Outputs
              a={row.a !== null ? a.run.run_id : null}
              b={row.b !== null ? b.run.run_id : null}
              stepId={row.stepId}
            />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function StepWord({ step, took }: { step: AlignedStep["a"]; took: number | null }) {
  if (step === null) return <span class="dim">missing</span>;
  const state = stateOfStep(step);
  return (
    <>
      <Badge state={state} word={wordOf(state)} />{" "}
      <span class="num dim">{took !== null ? formatDuration(took) : ""}</span>
    </>
  );
}

/** Durations are only compared if both ended alike: a step that failed early was not faster. */
function differenceText({ a, b, longer }: AlignedStep): string {
  if (a !== null && b !== null && a.status !== b.status) return `${wordOf(stateOfStep(a))}, ${wordOf(stateOfStep(b))}`;
  if (longer === null || Math.abs(longer) < 1) return longer === null ? "" : "same";
  return `${formatDuration(Math.abs(longer))} ${longer > 0 ? "longer" : "shorter"}`;
}

function TwoBars({ step, begin, scale }: { step: AlignedStep["a"]; begin: number; scale: TimeScale }) {
  const now = serverNow() - begin;
  return (
    <div class="compare-bar">
      {step === null
        ? null
        : segmentsOf(step).map((segment, index) => {
            const since = {
              ...segment,
              start: segment.start - begin,
              end: (segment.end ?? serverNow()) - begin,
            };
            const place = placeOf(since, scale, now);
            return place === null ? null : (
              <span
                key={index}
                class={`seg seg-${segment.shape}`}
                data-state={segment.state}
                style={{ left: `${place.left}px`, width: `${place.width}px` }}
              />
            );
          })}
    </div>
  );
}

function Outputs({ a, b, stepId }: { a: string | null; b: string | null; stepId: string }) {
  const both = useResource(
    (abort) =>
      Promise.all(
        [a, b].map((run) =>
          run === null
            ? null
            : api.get<StepView>(`/runs/${encodeURIComponent(run)}/step`, { id: stepId }, { abort, raw: RAW_FIELDS }),
        ),
      ),
    [a, b, stepId],
  );
  if (both.error !== null) return <ErrorBox page problem={both.error} onRetry={both.reload} />;
  if (both.value === null) return null;
  const [before, after] = both.value.map(resultText);
  return before === after ? (
    <p class="dim">Both results are the same.</p>
  ) : (
    <Diff lines={diffLines(before ?? "", after ?? "")} />
  );
}

function resultText(step: StepView | null): string {
  if (step === null) return "";
  if (step.error !== null) return step.error.text;
  return pretty(textOf(step.output) ?? "null");
}
