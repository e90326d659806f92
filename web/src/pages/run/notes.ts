// The texts beside the bars: the duration, or what the step waits for.
import { formatDuration, groupThousands } from "../../model/durations";
import type { TimelineStep } from "../../model/records";
import { type Row, stepIntervals, tookOf } from "../../model/step-rows";
import { spanOf } from "../../model/intervals";
import { toMs } from "../../model/times";

export interface Note {
  text: string;
  failing: boolean;
}

/** `bornMs`: when the run was created. What ended before is kept from the run that it was forked from. */
export function rowNote(row: Row, nowMs: number, maximum: number | null, bornMs: number): Note {
  if (row.kind === "more") return plain("");
  if (row.kind === "before") return plain(`${groupThousands(row.steps)} ${row.steps === 1 ? "step" : "steps"}`);
  if (row.members.length > 0) return groupNote(row, nowMs);
  if (row.step === null) return plain("");
  if (isKept(row.step, bornMs)) return plain("kept from the original");
  if (row.lostTo !== "") return plain(`lost to ${row.lostTo}`);
  return stepNote(row.step, nowMs, maximum);
}

function isKept(step: TimelineStep, bornMs: number): boolean {
  return step.finished_at !== null && toMs(step.finished_at) < bornMs;
}

function groupNote(row: Row, nowMs: number): Note {
  const span = spanOf(stepIntervals(row.members, nowMs));
  const took = span === null ? "" : formatDuration(span.end - span.start);
  if (row.failed > 0) return { text: `${took} · ${groupThousands(row.failed)} failed`, failing: true };
  if (row.done < row.steps) return plain(`${groupThousands(row.done)} of ${groupThousands(row.steps)} done`);
  return plain(took);
}

function stepNote(step: TimelineStep, nowMs: number, maximum: number | null): Note {
  const took = formatDuration(tookOf(step, nowMs));
  switch (step.kind) {
    case "sleep":
      return plain(sleepNote(step, took, nowMs));
    case "signal":
      return signalNote(step, took, nowMs);
    case "patch":
      return plain("patched");
    case "race":
      return plain("decided");
    default:
      return functionNote(step, took, nowMs, maximum);
  }
}

function plain(text: string): Note {
  return { text, failing: false };
}

function sleepNote(step: TimelineStep, took: string, nowMs: number): string {
  if (step.status === "completed") return `slept ${took}`;
  if (step.status !== "running" || step.wake_at === null) return `slept ${took}, then abandoned`;
  return `sleeping${left(step.wake_at, nowMs)}`;
}

function signalNote(step: TimelineStep, took: string, nowMs: number): Note {
  if (step.status === "completed") return plain(`waited ${took} for a signal`);
  if (step.status === "failed") return { text: `no signal within ${took}`, failing: true };
  if (step.status === "abandoned") return plain(`waited ${took}, then abandoned`);
  const limit = step.wake_at !== null ? left(step.wake_at, nowMs) : "";
  return plain(`waiting ${took} for a signal${limit}`);
}

function functionNote(step: TimelineStep, took: string, nowMs: number, maximum: number | null): Note {
  const child = step.kind === "child";
  switch (step.status) {
    case "completed":
      return plain(took);
    case "failed":
      return { text: `${took} · ${shortened(step.error ?? "failed")}`, failing: true };
    case "abandoned":
      return plain(`${took}, abandoned`);
    case "pending": {
      if (step.retry_at === null) return plain("waiting to start");
      const of = maximum !== null && maximum > 0 ? ` of ${maximum}` : "";
      const ms = toMs(step.retry_at) - nowMs;
      const when = ms > 0 ? `in ${formatDuration(Math.ceil(ms / 1000) * 1000)}` : "is due";
      return plain(`attempt ${step.attempt}${of} ${when}`);
    }
    default:
      return plain(
        child
          ? `child running for ${took}`
          : `running${step.worker_id !== null ? ` on ${step.worker_id.slice(0, 8)}` : ""}`,
      );
  }
}

function left(at: string, nowMs: number): string {
  const ms = Math.ceil((toMs(at) - nowMs) / 1000) * 1000;
  return ms > 0 ? `, ${formatDuration(ms)} left` : "";
}

const ERROR_CHARACTERS = 60;

function shortened(text: string): string {
  return text.length > ERROR_CHARACTERS ? `${text.slice(0, ERROR_CHARACTERS - 1)}…` : text;
}

export function countText(shown: number, all: number, complete: boolean): string {
  const total = `${groupThousands(all)}${complete ? "" : "+"} ${all === 1 ? "step" : "steps"}`;
  const text = shown === all ? total : `${groupThousands(shown)} of ${total}`;
  return complete ? text : `${text}, loading`;
}

/** How many steps of the run the rows show; discarded ones do not count. */
export function stepsIn(rows: readonly Row[]): number {
  let count = 0;
  let inside = 0;
  for (const row of rows) {
    if (row.level <= inside) inside = 0;
    if (inside > 0) continue;
    if (row.kind === "before") {
      inside = row.level + 1;
      continue;
    }
    if (row.members.length > 0) {
      count += row.steps + (row.isRace && row.step !== null ? 1 : 0);
      inside = row.level + 1;
      continue;
    }
    if (row.level === 1) count += 1;
  }
  return count;
}
