// The rows of a timeline: the tree of steps and groups, flattened in display order.
import { groupThousands } from "./durations";
import { mergeIntervals } from "./intervals";
import type { TimelineStep } from "./records";
import { BLANK, type Place, type Row, type RowKind, StepRow } from "./row";
import { type Segment, stepIntervals, timesOf } from "./segments";
import { isEnded, type StateName, stateOfStep } from "./statuses";
import { EVERY_STEP, filterSteps, hasFailed, isEveryStep, type StepFilter } from "./step-filter";
import { buildTree, isGroup, type StepGroup } from "./step-tree";

export * from "./segments";
export * from "./step-filter";
export type { Row, RowKind } from "./row";
export { captionOf, describeRow } from "./row-words";

/** Steps of an expanded child run. `more`: not all are loaded. */
export interface ChildSteps {
  readonly steps: readonly TimelineStep[];
  readonly more: boolean;
  readonly loading: boolean;
}

/** Steps that a retry of the run discarded. `count`: how many; `steps`: null while they are not loaded. */
export interface DiscardedSteps {
  readonly retrySeq: number;
  readonly label: string;
  readonly count: number;
  readonly steps: readonly TimelineStep[] | null;
  readonly failed: boolean;
}

/** The key of the row of a retry; `before:12:charge` is the key of a step in it. */
export function discardedKey(retrySeq: number): string {
  return `before:${retrySeq}`;
}

export interface RowView {
  readonly runId: string;
  readonly now: number;
  /** Whether more steps are being loaded, so that counts are not final. */
  readonly partial?: boolean;
  /** Keys of rows whose state was toggled: groups are initially expanded, all others collapsed. */
  readonly toggled: ReadonlySet<string>;
  readonly filter?: StepFilter;
  /** One for each retry of the run that discarded steps, latest first. */
  readonly discarded?: readonly DiscardedSteps[];
  readonly children?: ReadonlyMap<string, ChildSteps>;
}

/** Groups with at least this many steps show failures first. */
const FAILURES_FIRST = 10;
const SUMMED_STEPS = 2_000;
const MOST_LEVELS = 20;

export function buildRows(steps: readonly TimelineStep[], view: RowView): Row[] {
  const rows: Row[] = [];
  const build = new Builder(rows, view);
  build.before(view.discarded ?? []);
  build.run(view.runId, steps, 1);
  return rows;
}

class Builder {
  constructor(
    private readonly rows: Row[],
    private readonly view: RowView,
  ) {}

  run(runId: string, steps: readonly TimelineStep[], level: number): void {
    const shown = filterSteps(steps, this.view.filter ?? EVERY_STEP, this.view.now);
    this.nodes(runId, buildTree(shown), level, null);
  }

  before(groups: readonly DiscardedSteps[]): void {
    for (const group of groups) {
      const key = discardedKey(group.retrySeq);
      const expanded = this.view.toggled.has(key);
      const steps = filterSteps(group.steps ?? [], this.view.filter ?? EVERY_STEP, this.view.now);
      const row = this.groupRow(key, this.view.runId, "before", group.label, steps, 1);
      this.rows.push({ ...row, state: "abandoned", steps: group.count, expanded, discarded: true });
      if (!expanded) continue;
      const more = { ...BLANK, key: `${key}:more`, runId: this.view.runId, level: 2, discarded: true };
      if (group.steps === null) {
        this.rows.push({ ...more, kind: "more", label: group.failed ? "not loaded: try again" : "loading" });
      }
      this.discarded = true;
      this.nodes(this.view.runId, buildTree(steps), 2, null, `${key}:`);
      this.discarded = false;
    }
  }

  private discarded = false;

  private nodes(
    runId: string,
    nodes: readonly (TimelineStep | StepGroup)[],
    level: number,
    winner: TimelineStep | null,
    prefix = "",
  ): void {
    const own = runId === this.view.runId ? prefix : `${runId}:`;
    nodes.forEach((node, index) => {
      const place = { setSize: nodes.length, posInSet: index + 1, discarded: this.discarded };
      if (isGroup(node)) this.group(runId, node, level, own, winner, place);
      else this.step(runId, node, level, own, winner, place);
    });
  }

  private group(
    runId: string,
    group: StepGroup,
    level: number,
    own: string,
    outer: TimelineStep | null,
    place: Place,
  ): void {
    const only = group.nodes.length === 1 ? group.nodes[0] : undefined;
    // A map of thousands is one row, not a group with a single row in it.
    const folded = group.fold || (only !== undefined && isGroup(only) && only.fold);
    const shown = folded && only && isGroup(only) ? only : group;
    const nodes = shown.nodes;
    const label = folded ? `${shown.name} × ${groupThousands(group.members.length)}${this.view.partial === true ? "+" : ""}` : group.name;
    const row = this.groupRow(own + group.key, runId, folded ? "fold" : "group", label, group.members, level);
    const winner = group.race ? winnerOf(group) : outer;
    this.rows.push({ ...row, ...place, isRace: group.isRace, step: group.race });
    if (!row.expanded) return;
    const failuresFirst = !group.isRace && group.members.length > FAILURES_FIRST;
    this.nodes(runId, failuresFirst ? failedFirst(nodes) : nodes, level + 1, winner, own);
  }

  private groupRow(
    key: string,
    runId: string,
    kind: RowKind,
    label: string,
    members: readonly TimelineStep[],
    level: number,
  ): Row {
    const open = kind === "group" || !isEveryStep(this.view.filter ?? EVERY_STEP);
    const state = stateOfGroup(members);
    return {
      ...BLANK,
      key,
      runId,
      level,
      kind,
      label,
      state,
      attempts: 1,
      steps: members.length,
      done: count(members, (step) => isEnded(step.status)),
      failed: count(members, (step) => step.status === "failed"),
      expanded: this.view.toggled.has(key) ? !open : open,
      segments: this.summed(members, state),
      members,
    };
  }

  /** One bar for each interval in which any of the steps was open. */
  private summed(members: readonly TimelineStep[], state: StateName): Segment[] {
    if (members.length > SUMMED_STEPS) return [];
    const { now } = this.view;
    const goesOn = members.some((step) => timesOf(step).finished === null);
    return mergeIntervals(stepIntervals(members, now)).map(({ start, end }) => ({
      shape: "attempt",
      state,
      start,
      end: goesOn && end >= now ? null : end,
    }));
  }

  private step(
    runId: string,
    step: TimelineStep,
    level: number,
    own: string,
    winner: TimelineStep | null,
    place: Place,
  ): void {
    const row = new StepRow(own + step.step_id, runId, level, step, winner, place);
    if (row.childRunId && level < MOST_LEVELS) row.expanded = this.view.toggled.has(row.key);
    this.rows.push(row);
    if (row.expanded) this.child(row.childRunId, level + 1);
  }

  private child(runId: string, level: number): void {
    const loaded = this.view.children?.get(runId);
    if (loaded) this.run(runId, loaded.steps, level);
    if (loaded && !loaded.more && !loaded.loading) return;
    const label = loaded && !loaded.loading ? "load more steps" : "loading";
    this.rows.push({ ...BLANK, key: `${runId}:more`, runId, level, kind: "more", label, childRunId: runId });
  }
}

const OPEN_FIRST: readonly StateName[] = ["retrying", "running", "waiting", "sleeping", "paused", "pending"];
const ENDED_FIRST: readonly StateName[] = ["failed", "completed", "cancelled", "abandoned"];

/** The state of its open steps; once all have ended, the worst state. */
function stateOfGroup(members: readonly TimelineStep[]): StateName {
  const there = new Set<StateName>();
  for (const step of members) there.add(stateOfStep(step));
  return [...OPEN_FIRST, ...ENDED_FIRST].find((state) => there.has(state)) ?? "pending";
}

function count(members: readonly TimelineStep[], has: (step: TimelineStep) => boolean): number {
  let found = 0;
  for (const step of members) if (has(step)) found += 1;
  return found;
}

/** The winner of a race is the last step that ended before the decision and was not abandoned by it. */
function winnerOf(group: StepGroup): TimelineStep | null {
  const decided = group.race ? timesOf(group.race).created : Infinity;
  let winner: TimelineStep | null = null;
  for (const step of group.members) {
    const { finished } = timesOf(step);
    if (step.status === "abandoned" || finished === null || finished > decided) continue;
    if (!winner || finished >= (timesOf(winner).finished ?? 0)) winner = step;
  }
  return winner;
}

function failedFirst(nodes: readonly (TimelineStep | StepGroup)[]): (TimelineStep | StepGroup)[] {
  const failing = (node: TimelineStep | StepGroup) => (isGroup(node) ? node.members.some(hasFailed) : hasFailed(node));
  return [...nodes.filter(failing), ...nodes.filter((node) => !failing(node))];
}

/** Returns `toggled` with the changes that make a step visible. */
export function revealStep(steps: readonly TimelineStep[], view: RowView, stepId: string): ReadonlySet<string> {
  const toggled = new Set(view.toggled);
  const open = (nodes: readonly (TimelineStep | StepGroup)[]): boolean => {
    for (const node of nodes) {
      if (!isGroup(node)) {
        if (node.step_id === stepId) return true;
        continue;
      }
      if (node.race?.step_id === stepId) return true;
      if (!node.members.some((step) => step.step_id === stepId)) continue;
      const only = node.nodes[0];
      const shownAsFold = node.fold || (node.nodes.length === 1 && only !== undefined && isGroup(only) && only.fold);
      if (shownAsFold) toggled.add(node.key);
      else toggled.delete(node.key);
      return node.fold || open(shownAsFold && only && isGroup(only) ? only.nodes : node.nodes);
    }
    return false;
  };
  open(buildTree(steps));
  return toggled;
}
