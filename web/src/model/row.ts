// A row of a timeline.
import type { TimelineStep } from "./records";
import { attemptsOf, type Segment, segmentsOf } from "./segments";
import { isEnded, type StateName, stateOfStep } from "./statuses";
import { shortName } from "./step-tree";

/** `child`: a step that started a run; `before`: discarded by a retry of the run; `more`: steps to be loaded. */
export type RowKind = "step" | "group" | "fold" | "child" | "before" | "more";

export interface Row {
  readonly key: string;
  readonly runId: string;
  readonly level: number;
  readonly kind: RowKind;
  readonly label: string;
  readonly state: StateName;
  readonly attempts: number;
  /** How many steps it contains; `done` of them have ended and `failed` have failed. */
  readonly steps: number;
  readonly done: number;
  readonly failed: number;
  /** Null: it has no children. */
  readonly expanded: boolean | null;
  readonly setSize: number;
  readonly posInSet: number;
  readonly segments: readonly Segment[];
  /** The step itself; for a race, the step that decided it. */
  readonly step: TimelineStep | null;
  /** The steps of a group, for strips and counts. */
  readonly members: readonly TimelineStep[];
  readonly isRace: boolean;
  /** In a race: whether it won, and otherwise the name of the winner. */
  readonly won: boolean;
  readonly lostTo: string;
  /** The run that a child step started. */
  readonly childRunId: string;
  /** Whether a retry of the run has discarded it. */
  readonly discarded: boolean;
}

/** Computed lazily: of tens of thousands of rows only the visible ones are drawn. */
export class StepRow implements Row {
  readonly kind: RowKind;
  readonly label: string;
  readonly state: StateName;
  readonly attempts: number;
  readonly steps = 1;
  readonly done: number;
  readonly failed: number;
  readonly setSize: number;
  readonly posInSet: number;
  readonly members: readonly TimelineStep[] = [];
  readonly isRace = false;
  readonly won: boolean;
  readonly lostTo: string;
  readonly childRunId: string;
  readonly discarded: boolean;
  expanded: boolean | null = null;

  constructor(
    readonly key: string,
    readonly runId: string,
    readonly level: number,
    readonly step: TimelineStep,
    winner: TimelineStep | null,
    place: Place,
  ) {
    this.kind = step.child_run_id ? "child" : "step";
    this.label = shortName(step.step_id);
    this.state = stateOfStep(step);
    this.attempts = attemptsOf(step);
    this.done = isEnded(this.state) ? 1 : 0;
    this.failed = step.status === "failed" ? 1 : 0;
    this.setSize = place.setSize;
    this.posInSet = place.posInSet;
    this.won = winner === step;
    this.lostTo = winner && !this.won && step.status === "abandoned" ? shortName(winner.step_id) : "";
    this.childRunId = step.child_run_id ?? "";
    this.discarded = place.discarded;
  }

  get segments(): readonly Segment[] {
    const segments = segmentsOf(this.step);
    return this.won ? flagged(segments) : segments;
  }
}

export interface Place {
  readonly setSize: number;
  readonly posInSet: number;
  readonly discarded: boolean;
}

export const BLANK: Row = {
  key: "",
  runId: "",
  level: 1,
  kind: "step",
  label: "",
  state: "pending",
  attempts: 0,
  steps: 0,
  done: 0,
  failed: 0,
  expanded: null,
  setSize: 1,
  posInSet: 1,
  segments: [],
  step: null,
  members: [],
  isRace: false,
  won: false,
  lostTo: "",
  childRunId: "",
  discarded: false,
};

function flagged(segments: readonly Segment[]): Segment[] {
  return segments.map((each, at) => (at === segments.length - 1 ? { ...each, mark: "won" } : each));
}
