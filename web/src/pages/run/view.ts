// The view state of a run, all of it in the address: back, reload and shared links show the same.
import { computed, type ReadonlySignal } from "@preact/signals";
import type { StepKind } from "../../model/records";
import { route, setQuery } from "../../state/route";

export interface View {
  /** The selected step, and where it is: null for this run, the id of a child run, or `before:12`, the seq of a retry. */
  step: string | null;
  within: string | null;
  tab: string;
  page: "timeline" | "history" | "values";
  /** Rows that were toggled: groups that are collapsed, all others that are expanded. */
  toggled: ReadonlySet<string>;
  folding: boolean;
  unfolded: ReadonlySet<string>;
  zoom: readonly [number, number] | null;
  text: string;
  failed: boolean;
  slow: boolean;
  /** Empty: all but patches, which are shown on the axis. */
  kind: StepKind | "all" | "";
}

export const view: ReadonlySignal<View> = computed(() => readView(route.value.query));

export function readView(query: URLSearchParams): View {
  return {
    step: query.get("step"),
    within: query.get("in"),
    tab: query.get("tab") ?? "",
    page: readPage(query.get("view")),
    toggled: new Set(query.getAll("row")),
    folding: query.get("gaps") !== "all",
    unfolded: new Set(query.getAll("gap")),
    zoom: readZoom(query.get("zoom")),
    text: query.get("q") ?? "",
    failed: query.get("only") === "failed",
    slow: query.get("only") === "slow",
    kind: readKind(query.get("kind")),
  };
}

export const STEP_KINDS: readonly StepKind[] = ["function", "sleep", "signal", "child", "race", "patch"];

function readKind(text: string | null): View["kind"] {
  return text === "all" ? text : (STEP_KINDS.find((kind) => kind === text) ?? "");
}

/** `from-to` in milliseconds since the run was created, to keep links short. */
function readZoom(text: string | null): readonly [number, number] | null {
  const found = /^(-?\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)$/.exec(text ?? "");
  if (found === null) return null;
  const from = Number(found[1]);
  const to = Number(found[2]);
  return to > from ? [from, to] : null;
}

export function setZoom(range: readonly [number, number] | null): void {
  setQuery({ zoom: range === null ? null : `${round(range[0])}..${round(range[1])}` }, { replace: true });
}

function round(ms: number): string {
  return String(Math.round(ms * 1000) / 1000);
}

/** Adds to the browser's history only if the user chose a step, not with every arrow key. */
export function select(step: string | null, within: string | null, options: { replace?: boolean } = {}): void {
  setQuery({ step, in: step === null ? null : within }, options);
}

export function toggleRow(key: string): void {
  const toggled = new Set(view.peek().toggled);
  if (!toggled.delete(key)) toggled.add(key);
  setQuery({ row: [...toggled] });
}

export function toggleGap(key: string): void {
  const unfolded = new Set(view.peek().unfolded);
  if (!unfolded.delete(key)) unfolded.add(key);
  setQuery({ gap: [...unfolded] }, { replace: true });
}

export function toggleFolding(): void {
  setQuery({ gaps: view.peek().folding ? "all" : null, gap: null }, { replace: true });
}

function readPage(text: string | null): View["page"] {
  return text === "history" || text === "values" ? text : "timeline";
}
