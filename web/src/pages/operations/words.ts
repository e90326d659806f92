import type { FilterView, OperationView } from "../../api/types";
import { describeFilter, EVERY_RUN, filterToUrl, type RunFilter } from "../../model/filters";
import type { StateName } from "../../model/statuses";

/** Converts an operation's filter to the dashboard's. Leaves out runs that are listed by id. */
export function filterOf(view: FilterView): RunFilter {
  return {
    ...EVERY_RUN,
    status: view.status,
    workflow: view.workflow,
    label: Object.entries(view.labels).map(([key, value]) => `${key}=${value}`),
    since: view.since ?? "",
    until: view.until ?? "",
    ended_since: view.ended_since ?? "",
    ended_until: view.ended_until ?? "",
    id: view.id ?? "",
    id_prefix: view.id_prefix ?? "",
    version: view.version ?? "",
    parent: view.parent ?? "",
    schedule: view.schedule ?? "",
    key: view.key ?? "",
    worker: view.worker ?? "",
    problem: view.problem,
    failing: view.failing,
    waiting: view.waiting,
  };
}

export function filterWords(view: FilterView, zone: string): string {
  const named = view.run.length;
  if (named === 0) return describeFilter(filterOf(view), zone);
  return `${named} selected ${named === 1 ? "run" : "runs"}${view.status.length > 0 ? `, if ${view.status.join(" or ")}` : ""}`;
}

/** The parameters of `GET /runs` for the runs of an operation. */
export function filterPairs(view: FilterView): [string, string][] {
  return [...filterToUrl(filterOf(view)), ...view.run.map((id): [string, string] => ["run", id])];
}

export function stateOf(operation: OperationView): { state: StateName; word: string } {
  if (!operation.finished) return operation.stopped ? { state: "paused", word: "stopping" } : { state: "running", word: "running" };
  if (operation.stopped) return { state: "cancelled", word: "stopped" };
  return operation.failed > 0 ? { state: "failed", word: "finished, some failed" } : { state: "completed", word: "finished" };
}

export const ACTION_WORDS: Readonly<Record<OperationView["action"], string>> = {
  cancel: "Cancel",
  terminate: "Terminate",
  retry: "Retry",
  resume: "Resume",
  delete: "Delete",
};
