// Details of the selected step: its result, attempts, logs and actions.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { api } from "../../api/client";
import type { RetryView, StepView, TimelineStepView, WholeRunView } from "../../api/types";
import { formatDuration } from "../../model/durations";
import { isEnded, stateOfStep, wordOf } from "../../model/statuses";
import { toMs } from "../../model/times";
import { can } from "../../state/session";
import { setQuery } from "../../state/route";
import { useResource } from "../../state/resource";
import { RAW_FIELDS, type RunStore } from "../../state/run-store";
import { Badge } from "../../ui/badge";
import { Button, LinkButton } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { ErrorBox } from "../../ui/error-box";
import { Skeleton } from "../../ui/skeleton";
import { Tabs } from "../../ui/tabs";
import { Time } from "../../ui/time";
import { Attempts } from "./attempts";
import { Code } from "./code";
import { openDialog } from "./dialogs";
import { ErrorText } from "./errors";
import { runHref } from "./header";
import { Logs } from "./logs";
import { textOf, Value } from "./values";
import { select, view } from "./view";

export interface Selection {
  runId: string;
  row: TimelineStepView;
  /** The retry of the run that discarded it; null: it is part of the history. */
  retrySeq: number | null;
}

export function Inspector({ store, selection }: { store: RunStore; selection: Selection }) {
  const { runId, row, retrySeq } = selection;
  const path = `/runs/${encodeURIComponent(runId)}/step`;
  const step = useResource(
    (abort) => api.get<StepView>(path, { id: row.step_id, retry_seq: retrySeq }, { abort, raw: RAW_FIELDS }),
    [runId, retrySeq, row.step_id, row.status, row.seq, row.begun_seq, row.attempts.length],
  );
  const shown = step.value !== null && step.value.step_id === row.step_id ? step.value : null;
  const root = useRef<HTMLElement>(null);
  const leave = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    document.querySelector<HTMLElement>(".timeline-row[tabindex='0']")?.focus();
  };
  return (
    <section class="inspector" ref={root} onKeyDown={leave}>
      <header class="inspector-head">
        <h2 tabIndex={-1}>{row.step_id}</h2>
        <Badge state={stateOfStep(row)} word={wordOf(stateOfStep(row))} child={row.kind === "child"} />
        <Button kind="quiet" icon="cross" label="Close the step" onClick={() => select(null, null)} />
      </header>
      {step.error !== null && shown === null ? <ErrorBox problem={step.error} onRetry={step.reload} /> : null}
      {shown === null && step.error === null ? <Skeleton rows={4} /> : null}
      {shown !== null ? <Details store={store} runId={runId} row={row} step={shown} /> : null}
    </section>
  );
}

function Details({
  store,
  runId,
  row,
  step,
}: {
  store: RunStore;
  runId: string;
  row: TimelineStepView;
  step: StepView;
}) {
  const tabs = tabsOf(step);
  const active = tabs.some((tab) => tab.id === view.value.tab) ? view.value.tab : (tabs[0]?.id ?? "");
  return (
    <>
      <Tabs tabs={tabs} active={active} label="About the step" onSelect={(tab) => setQuery({ tab }, { replace: true })}>
        <Panel store={store} tab={active} runId={runId} step={step} />
      </Tabs>
      <StepFacts runId={runId} step={step} />
      <StepActions store={store} runId={runId} row={row} discarded={step.retry_seq !== null} />
    </>
  );
}

function tabsOf(step: StepView): { id: string; label: string; count?: number }[] {
  const tried = step.attempts.length + (step.status === "pending" ? 0 : 1);
  const first = step.error !== null ? { id: "error", label: "Error" } : { id: "output", label: "Output" };
  const tabs: { id: string; label: string; count?: number }[] = [first];
  if (step.kind === "function")
    tabs.push({ id: "attempts", label: "Attempts", count: tried }, { id: "logs", label: "Logs" });
  if (textOf(step.input) !== null && textOf(step.input) !== "null") {
    tabs.push({ id: "input", label: step.kind === "signal" ? "Schema" : "Input" });
  }
  // the code is about the step as it is now
  if (step.retry_seq === null) tabs.push({ id: "code", label: "Code" });
  return [...tabs, { id: "raw", label: "Raw" }];
}

function Panel({
  store,
  tab,
  runId,
  step,
}: {
  store: RunStore;
  tab: string;
  runId: string;
  step: StepView;
}): ComponentChildren {
  switch (tab) {
    case "error":
      return step.error !== null ? <ErrorText error={step.error} notRetried={step.not_retried} /> : null;
    case "attempts":
      return <Attempts key={step.step_id} step={step} />;
    case "logs":
      return <Logs key={step.step_id} runId={runId} step={step} />;
    case "input":
      return <Value text={textOf(step.input) ?? "null"} label="Input" />;
    case "code":
      return <Code store={store} runId={runId} step={step} />;
    case "raw":
      return <Value text={rawText(step)} label="Raw" />;
    default:
      return <Output step={step} />;
  }
}

function Output({ step }: { step: StepView }) {
  const text = textOf(step.output);
  if (step.status === "completed" && text !== null) return <Value text={text} label="Output" />;
  if (step.status === "completed") return <p class="dim">Completed without a return value.</p>;
  const last = step.attempts.at(-1);
  if (step.status === "pending" && last !== undefined) {
    return (
      <>
        <p class="dim">No result yet. The last attempt failed:</p>
        <ErrorText error={last.error} />
      </>
    );
  }
  return (
    <p class="dim">{step.status === "abandoned" ? "Abandoned before it had a result." : "No result yet."}</p>
  );
}

/** The API's complete response about the step, with values to the byte. */
function rawText(step: StepView): string {
  const { input, output, details, ...rest } = step;
  const members = Object.entries({ ...rest, details, input, output }).map(([name, value]) => {
    const text =
      name === "input" || name === "output" || name === "details" ? (textOf(value) ?? "null") : JSON.stringify(value);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${members.join(",")}}`;
}

function StepFacts({ runId, step }: { runId: string; step: StepView }) {
  const details = textOf(step.details);
  const key = `${runId}/${step.step_id}`;
  return (
    <dl class="step-facts">
      {step.retried_at !== null ? (
        <Fact name="discarded by the retry of">
          <Time ms={toMs(step.retried_at)} style="datetime" />
        </Fact>
      ) : null}
      {step.started_at !== null ? (
        <Fact name="began">
          <Time ms={toMs(step.started_at)} style="datetime" />
        </Fact>
      ) : null}
      {step.finished_at !== null ? (
        <Fact name="ended">
          <Time ms={toMs(step.finished_at)} style="datetime" />
        </Fact>
      ) : null}
      {step.kind === "function" ? (
        <Fact name="idempotency key">
          <code title={key}>{`${runId.slice(0, 4)}…/${step.step_id}`}</code>{" "}
          <Copy text={key} label="Copy idempotency key" />
        </Fact>
      ) : null}
      {step.retry !== null ? <Fact name="tried">{policyText(step.retry)}</Fact> : null}
      {step.timeout_ms !== null ? <Fact name="timeout">{formatDuration(step.timeout_ms)}</Fact> : null}
      {step.worker_id !== null ? (
        <Fact name="worker">
          <code title={step.worker_id}>{step.worker_id.slice(0, 8)}</code>
        </Fact>
      ) : null}
      {details !== null && details !== "null" ? (
        <Fact name="heartbeat">
          <Value text={details} label="Heartbeat details" />
        </Fact>
      ) : null}
    </dl>
  );
}

/** `at most 5 times, 1s to 1m apart`. */
function policyText(retry: RetryView): string {
  const { maximum_attempts: most, initial_interval_ms: first, maximum_interval_ms: longest } = retry;
  if (most === 1) return "once";
  const times = most > 0 ? `at most ${most} times` : "until it succeeds";
  return first === 0 ? `${times}, without delay` : `${times}, ${formatDuration(first)} to ${formatDuration(longest)} apart`;
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function StepActions(props: { store: RunStore; runId: string; row: TimelineStepView; discarded: boolean }) {
  const { store, runId, row, discarded } = props;
  const run: WholeRunView | null = store.run.value;
  const child =
    row.child_run_id !== null ? <LinkButton href={runHref(row.child_run_id)}>Open the child run</LinkButton> : null;
  if (run === null || runId !== run.run_id) {
    return (
      <p class="step-actions">
        {child}
        <LinkButton href={runHref(runId, row.step_id)}>Open run</LinkButton>
      </p>
    );
  }
  if (!can("client") || discarded) return child !== null ? <p class="step-actions">{child}</p> : null;
  const open = !isEnded(run.status);
  const waits =
    open && ((row.status === "pending" && row.retry_at !== null) || (row.kind === "sleep" && row.status === "running"));
  const step = row.step_id;
  return (
    <p class="step-actions">
      {waits ? (
        <Button onClick={() => openDialog({ kind: "wake", step })}>
          {row.kind === "sleep" ? "Wake now…" : "Retry now…"}
        </Button>
      ) : null}
      {row.kind === "signal" && row.status === "running" && open ? (
        <Button onClick={() => openDialog({ kind: "signal", name: row.name })}>Send the signal…</Button>
      ) : null}
      <Button onClick={() => openDialog({ kind: "fork", step, edit: false })}>Rerun from here…</Button>
      {row.status === "completed" ? (
        <Button onClick={() => openDialog({ kind: "fork", step, edit: true })}>Edit output and fork…</Button>
      ) : null}
      {child}
    </p>
  );
}
