import type { RunView } from "../../api/types";
import { queueText } from "../../model/queue-times";
import { failingHint, isEnded } from "../../model/statuses";
import { toMs } from "../../model/times";
import { secondNow } from "../../state/clock";
import { A } from "../../ui/a";
import { Progress } from "../../ui/progress";
import { Duration, Elapsed, Until } from "../../ui/time";

/** What a run does, or waits for: the text set by its code, else one of its state. */
export function Doing({ run }: { readonly run: RunView }) {
  const error = run.problem ?? run.error;
  if (error !== null) {
    return (
      <span class="runs-error" title={error.text}>
        {error.text}
      </span>
    );
  }
  if (isEnded(run.status)) return <span class="dim">{queueText(run, 0)}</span>; // what it said last is over
  const failing = failingHint(run);
  return (
    <span class="runs-doing">
      {run.status_text !== null && <span class="runs-text" title={run.status_text}>{run.status_text}</span>}
      {run.progress !== null && <Progress value={run.progress} label={`Progress of ${run.workflow_id}`} />}
      {failing !== "" && <span class="runs-failing">{failing}</span>}
      {run.status_text === null && <Waiting run={run} />}
    </span>
  );
}

function Waiting({ run }: { readonly run: RunView }) {
  if (run.cancel_requested) return <span class="dim">cancelling</span>;
  if (run.status === "paused") return <span class="dim">{run.pause_reason ?? "paused manually"}</span>;
  if (run.blocked_by !== null) return <span class="dim">held back by {run.blocked_by}</span>;
  if (run.status === "pending") return <InQueue run={run} />;
  if (run.status !== "sleeping") return null;
  if (run.wait_reason === "child") return <span class="dim">waiting for a child</span>;
  if (run.awaits_signal > 0) return <span class="dim">waiting for {signals(run.awaits_signal)}</span>;
  if (run.wake_at === null) return null;
  return (
    <span class="dim">
      {run.wait_reason === "retry" ? "next attempt " : "resumes "}
      <Until ms={toMs(run.wake_at)} />
    </span>
  );
}

function InQueue({ run }: { readonly run: RunView }) {
  return <span class="dim">{queueText(run, secondNow.value) || "waiting for a worker"}</span>;
}

function signals(count: number): string {
  return count === 1 ? "a signal" : `${count} signals`;
}

/** From its first claim to its end, or to now. */
export function Took({ run }: { readonly run: RunView }) {
  if (run.started_at === null) return <span class="dim">–</span>;
  const began = toMs(run.started_at);
  return run.finished_at === null ? <Elapsed since={began} /> : <Duration ms={toMs(run.finished_at) - began} />;
}

const LABELS_SHOWN = 1;

export function Labels({ run, href }: { readonly run: RunView; readonly href: (label: string) => string }) {
  const labels = Object.entries(run.labels).map(([key, value]) => `${key}=${value}`);
  const rest = labels.slice(LABELS_SHOWN);
  return (
    <>
      {labels.slice(0, LABELS_SHOWN).map((label) => (
        <A key={label} class="runs-label" href={href(label)} title={`Show only ${label}`} tabIndex={-1}>
          {label}
        </A>
      ))}
      {rest.length > 0 && (
        <span class="dim" title={rest.join("\n")}>
          +{rest.length}
        </span>
      )}
    </>
  );
}
