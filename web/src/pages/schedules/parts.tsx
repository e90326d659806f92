import type { FireView, RunView, ScheduleView, TimeView } from "../../api/types";
import { parseDuration } from "../../model/durations";
import type { IconName, StateName } from "../../model/statuses";
import { offsetOf, toMs, zoneName, type Zone } from "../../model/times";
import { cronWords } from "./cron-words";

/** When it fires, in words. */
export function whenWords(schedule: Pick<ScheduleView, "cron" | "every" | "timezone">): string {
  if (schedule.every !== null) return `every ${schedule.every}`;
  const words = cronWords(schedule.cron ?? "");
  return words === null ? `${schedule.cron} (${schedule.timezone})` : `${words} (${schedule.timezone})`;
}

export type FireState = "ran" | "running" | "skipped" | "late" | "failed";

const LATE_MS = 60_000;

/** The result of a scheduled time. A failed run takes precedence over a late one. */
export function fireState(fire: FireView, run: RunView | undefined, jitter: string): FireState {
  if (fire.skipped !== null) return "skipped";
  if (run?.status === "failed") return "failed";
  const late = toMs(fire.at) - toMs(fire.nominal_at) > LATE_MS + (parseDuration(jitter) ?? 0);
  if (fire.cause === "catchup" || (fire.cause === "clock" && late)) return "late";
  return run !== undefined && run.finished_at === null ? "running" : "ran";
}

export const FIRE_LOOKS: Readonly<Record<FireState, { readonly state: StateName; readonly icon: IconName }>> = {
  ran: { state: "completed", icon: "check" },
  running: { state: "running", icon: "play" },
  skipped: { state: "cancelled", icon: "minus" },
  late: { state: "waiting", icon: "clock" },
  failed: { state: "failed", icon: "cross" },
};

/** The reason of the state, for people. */
export function fireReason(fire: FireView, run: RunView | undefined): string {
  if (fire.skipped !== null) {
    return fire.skipped_count > 1 ? `${fire.skipped} (${fire.skipped_count} times)` : fire.skipped;
  }
  const causes = { clock: "", catchup: "caught up", trigger: "triggered", backfill: "backfilled" } as const;
  const parts = [causes[fire.cause], run?.status === "failed" ? (run.error?.text ?? "failed") : ""];
  return parts.filter((part) => part !== "").join(": ");
}

/** The effect of daylight saving changes on these times; empty: none. */
export function clockNote(times: readonly TimeView[], cron: string | null): string {
  const [minute, hour] = (cron ?? "").split(/\s+/).slice(-5);
  const wanted = /^\d{1,2}$/.test(minute ?? "") && /^\d{1,2}$/.test(hour ?? "") ? `${pad(hour)}:${pad(minute)}` : null;
  const moved = wanted === null ? undefined : times.find((each) => timeOfDay(each) !== wanted);
  if (moved) {
    const day = moved.local.slice(0, 14);
    return `${wanted} does not exist on ${day}, when the clocks go forward: it fires at ${timeOfDay(moved)}.`;
  }
  const at = times.findIndex((each, index) => index > 0 && each.zone !== times[index - 1]?.zone);
  const [before, after] = [times[at - 1], times[at]];
  if (at < 1 || !before || !after) return "";
  return `The clocks change before ${after.local}: ${before.zone} becomes ${after.zone}.`;
}

/** The time of day in `Sun 2026-03-29 03:00:00`. */
function timeOfDay(time: TimeView): string {
  return time.local.slice(15, 20);
}

function pad(text: string | undefined): string {
  return (text ?? "").padStart(2, "0");
}

// --- typed times -----------------------------------------------------------------------------------------------------

/** For a datetime input, in a zone: `2026-11-16T14:02`. */
export function toWall(ms: number, zone: Zone): string {
  return new Date(ms + offsetOf(ms, zone)).toISOString().slice(0, 16);
}

/** Parses the input. Null: invalid. */
export function fromWall(text: string, zone: Zone): number | null {
  const there = Date.parse(`${text}Z`);
  if (Number.isNaN(there)) return null;
  const guess = there - offsetOf(there, zone);
  return there - offsetOf(guess, zone);
}

export function zoneLabel(zone: Zone): string {
  return zoneName(Date.now(), zone);
}
