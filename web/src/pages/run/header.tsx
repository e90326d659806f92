// The header of a run: its name, state, labels and actions.
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { api } from "../../api/client";
import type { RunView, TimelineStepView, WholeRunView } from "../../api/types";
import { formatDuration } from "../../model/durations";
import { queueText } from "../../model/queue-times";
import { awaitsChild, isEnded, stateOfRun, wordOf } from "../../model/statuses";
import { toMs } from "../../model/times";
import { now, secondNow } from "../../state/clock";
import { go, href } from "../../state/route";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Chip } from "../../ui/chip";
import { Copy } from "../../ui/copy";
import { LongText } from "../../ui/long-text";
import { Progress } from "../../ui/progress";
import { useShortcut } from "../../ui/shortcuts";
import { Actions } from "./actions";
import type { RunStore } from "../../state/run-store";

export function Header({ store, selected }: { store: RunStore; selected: TimelineStepView | null }) {
  const run = store.run.value;
  if (run === null) return null;
  return (
    <header class="run-header">
      <div class="run-title">
        <div class="run-name">
          <h1>{run.workflow}</h1>
          {run.workflow_id !== run.run_id ? (
            <span class="run-id">
              <code>{run.workflow_id}</code>
              <Copy text={run.workflow_id} label="Copy workflow id" />
            </span>
          ) : null}
          <span role="status" aria-live="polite" class="run-state">
            <Badge state={stateOfRun(run)} word={wordOf(stateOfRun(run))} child={awaitsChild(run)} />
          </span>
          <Facts run={run} failing={failingSteps(store)} />
        </div>
        <Actions store={store} run={run} selected={selected} />
      </div>
      <Relations run={run} />
      {!isEnded(run.status) && (run.status_text !== null || run.progress !== null) ? (
        <p class="run-status-text">
          {run.progress !== null ? <Progress value={run.progress} /> : null}
          {run.status_text !== null ? <LongText text={run.status_text} /> : null}
        </p>
      ) : null}
    </header>
  );
}

function Facts({ run, failing }: { run: WholeRunView; failing: number }) {
  const facts: ComponentChildren[] = [];
  const queued = queueText(run, run.ready_at === null ? 0 : secondNow.value);
  if (queued !== "") facts.push(<span title={firstWait(run)}>{queued}</span>);
  if (queued === "" || run.started_at !== null) facts.push(<Took run={run} />);
  if (failing > 0)
    facts.push(<span class="is-failing">{`${failing} failing ${failing === 1 ? "step" : "steps"}`}</span>);
  if (run.version !== null) facts.push(<span>{`version ${run.version}`}</span>);
  if (run.pinned_build !== null) {
    const title = `Only workers with build ${run.pinned_build} can run it`;
    facts.push(<span class="run-pinned" title={title}>{`pinned to build ${run.pinned_build}`}</span>);
  }
  if (run.attempt > 1) facts.push(<span>{`attempt ${run.attempt} of the run`}</span>);
  if (run.worker_id !== null) {
    facts.push(
      <A href={href(`/workers/${encodeURIComponent(run.worker_id)}`)} title={run.worker_id}>
        {`worker ${run.worker_id.slice(0, 8)}`}
      </A>,
    );
  }
  return <span class="run-facts">{facts.flatMap((fact, index) => (index === 0 ? [fact] : [" · ", fact]))}</span>;
}

/** How much of all its waits for workers was before its start. */
function firstWait(run: WholeRunView): string {
  if (run.queued_at === null || run.started_at === null) return "";
  return `${formatDuration(toMs(run.started_at) - toMs(run.queued_at))} before it started`;
}

function Took({ run }: { run: WholeRunView }) {
  const from = toMs(run.started_at ?? run.created_at);
  if (run.finished_at !== null) return <span class="num">{formatDuration(toMs(run.finished_at) - from)}</span>;
  return <RunningFor from={from} />;
}

function RunningFor({ from }: { from: number }) {
  return <span class="num">{formatDuration(now.value - from)}</span>;
}

function failingSteps(store: RunStore): number {
  const run = store.run.value;
  if (run === null || isEnded(run.status)) return 0;
  return store.steps.value.filter((step) => step.status === "pending" && step.attempts.length > 0).length;
}

function Relations({ run }: { run: WholeRunView }) {
  const [root, setRoot] = useState(false);
  useShortcut("p", "Open the parent run", () => {
    if (run.parent_run_id !== null) go(runHref(run.parent_run_id));
  });
  const labels = Object.entries(run.labels);
  const items: ComponentChildren[] = [];
  if (run.parent_run_id !== null) {
    items.push(<A href={runHref(run.parent_run_id, run.parent_step_id)}>{`parent ${short(run.parent_run_id)}`}</A>);
    items.push(
      <button type="button" class="link" disabled={root} onClick={() => (setRoot(true), void goToRoot(run))}>
        root
      </button>,
    );
  }
  if (run.forked_from !== null) {
    items.push(<A href={runHref(run.forked_from)}>{`forked from ${short(run.forked_from)}`}</A>);
    items.push(<A href={compareHref(run.forked_from, run.run_id)}>compare with the original</A>);
  }
  if (run.continued_as !== null)
    items.push(<A href={runHref(run.continued_as)}>{`continued as ${short(run.continued_as)}`}</A>);
  if (run.unread_signals > 0) items.push(<span>{unreadText(run)}</span>);
  if (run.handed_on_to !== null)
    items.push(<A href={runHref(run.handed_on_to)}>{`signals handed on to ${short(run.handed_on_to)}`}</A>);
  if (run.schedule !== null) {
    items.push(<A href={href(`/schedules/${encodeURIComponent(run.schedule)}`)}>{`schedule ${run.schedule}`}</A>);
  }
  if (run.trace_id !== null) items.push(<Trace id={run.trace_id} url={run.trace_url} />);
  for (const [key, value] of labels)
    items.push(<Chip href={href("/runs", { label: `${key}=${value}` })}>{`${key}=${value}`}</Chip>);
  return (
    <p class="run-relations">
      <span class="run-id">
        <code class="dim">{run.run_id}</code>
        <Copy text={run.run_id} label="Copy run id" />
      </span>
      {items}
    </p>
  );
}

function unreadText(run: WholeRunView): string {
  const signals = `${run.unread_signals} unread signal${run.unread_signals === 1 ? "" : "s"}`;
  return isEnded(run.status) ? `ended with ${signals}` : signals;
}

/** Opens in a new tab, as it is another site. */
function Trace({ id, url }: { id: string; url: string | null }) {
  return (
    <span class="run-trace">
      {url !== null ? (
        <a href={url} target="_blank" rel="noreferrer" title={id}>{`trace ${short(id)}`}</a>
      ) : (
        <span class="dim" title={id}>{`trace ${short(id)}`}</span>
      )}
      <Copy text={id} label="Copy trace id" />
    </span>
  );
}

/** Follows parents to the root; each run only knows its own parent. */
async function goToRoot(run: RunView): Promise<void> {
  let at = run;
  for (let level = 0; level < 50 && at.parent_run_id !== null; level++) {
    at = await api.get<RunView>(`/runs/${encodeURIComponent(at.parent_run_id)}`);
  }
  go(runHref(at.run_id));
}

export function runHref(runId: string, step?: string | null): string {
  const query = step == null ? {} : { step };
  return href(`/runs/${encodeURIComponent(runId)}`, query);
}

export function compareHref(a: string, b: string): string {
  return href(`/runs/${encodeURIComponent(a)}/compare/${encodeURIComponent(b)}`);
}

export function short(id: string): string {
  return id.length > 13 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id;
}
