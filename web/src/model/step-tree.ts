// Builds the tree of steps: parallel, map and race are groups, and many steps of one name are folded into one row.
import type { TimelineStep } from "./records";

/** More steps of one name under one parent are folded. */
export const FOLD_STEPS = 50;

/** A parallel, a map or a race, or (`fold`) many steps of one name. */
export interface StepGroup {
  readonly key: string;
  readonly id: string;
  readonly name: string;
  readonly fold: boolean;
  /** Steps and groups, in the order of their first step. */
  readonly nodes: (TimelineStep | StepGroup)[];
  /** All steps in it, including those of nested groups. */
  readonly members: TimelineStep[];
  race: TimelineStep | null;
  isRace: boolean;
}

export function isGroup(node: TimelineStep | StepGroup): node is StepGroup {
  return "members" in node;
}

/** In order of creation. A retry gives a step a later `begun_seq`, but its row stays in place. */
export function inOrder(steps: readonly TimelineStep[]): readonly TimelineStep[] {
  for (let index = 1; index < steps.length; index += 1) {
    if (compare(steps[index - 1] as TimelineStep, steps[index] as TimelineStep) > 0) return [...steps].sort(compare);
  }
  return steps;
}

function compare(a: TimelineStep, b: TimelineStep): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.begun_seq - b.begun_seq;
}

export function buildTree(steps: readonly TimelineStep[]): (TimelineStep | StepGroup)[] {
  const top: (TimelineStep | StepGroup)[] = [];
  const groups = new Map<string, StepGroup>();
  const groupOf = (id: string): StepGroup => {
    const known = groups.get(id);
    if (known) return known;
    const name = shortName(id);
    const group = emptyGroup(`group:${id}`, id, name, false);
    groups.set(id, group);
    nodesOf(parentGroup(id)).push(group);
    return group;
  };
  const nodesOf = (id: string | null) => (id === null ? top : groupOf(id).nodes);
  for (const step of inOrder(steps)) {
    if (step.kind === "race") {
      // The branches of a race came before it, in a group with its id; without recorded branches it is a plain step.
      const raced = groups.get(step.step_id);
      if (raced) raced.race = step;
      else nodesOf(step.parallel_group).push(step);
      continue;
    }
    nodesOf(step.parallel_group).push(step);
    if (step.parent_step_id !== null) groupOf(step.parent_step_id).isRace = true;
    for (let id = step.parallel_group; id !== null; id = parentGroup(id)) groupOf(id).members.push(step);
  }
  for (const group of groups.values()) foldEqualNames(group.nodes, group.id);
  foldEqualNames(top, "");
  return top;
}

function emptyGroup(key: string, id: string, name: string, fold: boolean): StepGroup {
  return { key, id, name, fold, nodes: [], members: [], race: null, isRace: false };
}

const parents = new Map<string, string | null>();

/** `parallel[0]/enrich` is in a branch of `parallel`. */
function parentGroup(id: string): string | null {
  let found = parents.get(id);
  if (found === undefined) {
    found = /^(.+)\[[^[\]]*\]\/(?:task\[\d+\]\/)*[^/]*$/.exec(id)?.[1] ?? null;
    if (parents.size > 10_000) parents.clear();
    parents.set(id, found);
  }
  return found;
}

/** An id without its branch: `parallel[0]/charge#2` is `charge#2` there. */
export function shortName(id: string): string {
  return id.slice(id.lastIndexOf("]/") + 1).replace(/^\//, "");
}

function foldEqualNames(nodes: (TimelineStep | StepGroup)[], under: string): void {
  if (nodes.length <= FOLD_STEPS) return;
  const counts = new Map<string, number>();
  for (const node of nodes) if (!isGroup(node)) counts.set(node.name, (counts.get(node.name) ?? 0) + 1);
  const folds = new Map<string, StepGroup>();
  const kept: (TimelineStep | StepGroup)[] = [];
  for (const node of nodes) {
    if (isGroup(node) || (counts.get(node.name) ?? 0) <= FOLD_STEPS) {
      kept.push(node);
      continue;
    }
    let fold = folds.get(node.name);
    if (!fold) {
      fold = emptyGroup(`fold:${under}:${node.name}`, under, node.name, true);
      folds.set(node.name, fold);
      kept.push(fold);
    }
    fold.nodes.push(node);
    fold.members.push(node);
  }
  if (!folds.size) return;
  nodes.length = 0;
  for (const node of kept) nodes.push(node);
}
