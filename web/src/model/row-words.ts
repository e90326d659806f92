// Describes a row for screen readers.
import { formatDuration, groupThousands, speakDuration } from "./durations";
import { timesOf, tookOf } from "./segments";
import { wordOf } from "./statuses";
import type { Row } from "./row";

/** `charge-card, completed, 3 attempts, 52 seconds`. */
export function describeRow(row: Row, now: number): string {
  if (row.kind === "more") return row.label;
  if (row.kind === "before") return `${row.label}, ${stepsText(row.steps)}`;
  const parts = [row.label, wordOf(row.state)];
  if (row.members.length) {
    parts.push(`${groupThousands(row.done)} of ${groupThousands(row.steps)} done`);
    if (row.failed) parts.push(`${groupThousands(row.failed)} failed`);
  }
  if (row.attempts > 1) parts.push(`${row.attempts} attempts`);
  if (row.won) parts.push("won the race");
  if (row.lostTo) parts.push(`lost to ${row.lostTo}`);
  const took = tookOfRow(row, now);
  if (took !== null) parts.push(speakDuration(took));
  return parts.join(", ");
}

function stepsText(count: number): string {
  return `${groupThousands(count)} ${count === 1 ? "step" : "steps"}`;
}

/** The text beside the bar: `52s`, `slept 30s`, `waited 2h 11m for a signal`, `running on worker-3`. */
export function captionOf(row: Row, now: number): string {
  const took = tookOfRow(row, now);
  const { step } = row;
  if (row.kind === "more" || took === null) return "";
  if (row.lostTo) return `lost to ${row.lostTo}`;
  const length = formatDuration(took);
  if (!step || row.members.length) return `${groupThousands(row.done)}/${groupThousands(row.steps)}`;
  if (step.kind === "patch") return "changed";
  if (step.kind === "sleep") return `${step.finished_at ? "slept" : "sleeping"} ${length}`;
  if (step.kind === "signal") {
    if (step.status === "failed") return `no signal in ${length}`;
    return `${step.finished_at ? "waited" : "waiting"} ${length} for a signal`;
  }
  if (step.status === "running" && step.kind === "function" && step.worker_id) return `running on ${step.worker_id}`;
  return length;
}

function tookOfRow(row: Row, now: number): number | null {
  if (row.step && !row.members.length) return tookOf(row.step, now);
  let first = Infinity;
  let last = -Infinity;
  for (const step of row.members) {
    const { created, finished } = timesOf(step);
    first = Math.min(first, created);
    last = Math.max(last, finished ?? now);
  }
  return row.members.length ? Math.max(0, last - first) : null;
}
