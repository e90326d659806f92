import type { RunView } from "../../api/types";
import type { RunRow } from "../../state/runs-store";

/** A line of the list: a run, or the children of a run that is not in the list. */
export type Line =
  | { readonly kind: "run"; readonly key: string; readonly row: RunRow; readonly level: 0 | 1; readonly children: number }
  | { readonly kind: "group"; readonly key: string; readonly parent: string; readonly rows: readonly RunRow[] };

/** Fewer children of one parent are not folded: a fold of two saves nothing. */
const FOLDED_FROM = 3;

/** Folds children under their parents, wherever they are in the list. Those in `open` are expanded. */
export function foldRows(rows: readonly RunRow[], open: ReadonlySet<string>): Line[] {
  const shown = new Set(rows.map((row) => row.id));
  const families = new Map<string, RunRow[]>();
  for (const row of rows) {
    const parent = row.run.peek().parent_run_id;
    if (parent !== null) families.set(parent, [...(families.get(parent) ?? []), row]);
  }
  const lines: Line[] = [];
  const done = new Set<string>();
  for (const row of rows) {
    const parent = row.run.peek().parent_run_id;
    const family = parent === null ? [] : (families.get(parent) ?? []);
    if (parent === null || (!shown.has(parent) && family.length < FOLDED_FROM)) {
      lines.push(...withChildren(row, 0, families, open));
    } else if (!shown.has(parent) && !done.has(parent)) {
      done.add(parent);
      lines.push({ kind: "group", key: `group ${parent}`, parent, rows: family });
      if (open.has(parent)) lines.push(...family.flatMap((each) => withChildren(each, 1, families, open)));
    }
  }
  return lines;
}

function withChildren(row: RunRow, level: 0 | 1, families: ReadonlyMap<string, RunRow[]>, open: ReadonlySet<string>): Line[] {
  const family = families.get(row.id) ?? [];
  const line: Line = { kind: "run", key: row.id, row, level, children: family.length };
  if (!open.has(row.id)) return [line];
  return [line, ...family.flatMap((each) => withChildren(each, 1, families, open))];
}

/** Whether it can be expanded: it has children in the list, or waits for one. */
export function mayHaveChildren(run: RunView, inList: number): boolean {
  return inList > 0 || run.wait_reason === "child";
}

/** `45 completed, 2 failed`. */
export function countStates(rows: readonly RunRow[]): string {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const status = row.run.value.status;
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return [...counts].map(([status, count]) => `${count} ${status}`).join(", ");
}
