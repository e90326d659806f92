// The keys of the timeline: those of a treegrid, and letters for common actions.
import type { Row } from "../../model/step-rows";
import { useShortcut } from "../../ui/shortcuts";
import { select, toggleFolding, view } from "./view";

interface Keys {
  rows: readonly Row[];
  at: number;
  focus: (index: number) => void;
  nextFailure: (direction: 1 | -1) => void;
  zoom: (factor: number) => void;
  follow: () => void;
  toggle: (row: Row) => void;
}

export function useTimelineKeys({ rows, at, focus, nextFailure, zoom, follow, toggle }: Keys): void {
  const inGrid = (event: KeyboardEvent) =>
    event.target instanceof HTMLElement && event.target.closest(".timeline") !== null;
  const row = rows[at];
  const started = view.value.step !== null;
  useShortcut("j", "Next step", () => focus(started ? at + 1 : at));
  useShortcut("k", "Previous step", () => focus(at - 1));
  useShortcut("ArrowDown", "Next step, in the timeline", (event) => (inGrid(event) ? focus(at + 1) : false));
  useShortcut("ArrowUp", "Previous step, in the timeline", (event) => (inGrid(event) ? focus(at - 1) : false));
  useShortcut("Home", "First step", (event) => (inGrid(event) ? focus(0) : false));
  useShortcut("End", "Last step", (event) => (inGrid(event) ? focus(rows.length - 1) : false));
  useShortcut("ArrowRight", "Expand a row", (event) => {
    if (!inGrid(event) || row === undefined) return false;
    if (row.expanded === false) toggle(row);
    else if (row.expanded === true) focus(at + 1);
    return true;
  });
  useShortcut("ArrowLeft", "Collapse a row, or go to its parent", (event) => {
    if (!inGrid(event) || row === undefined) return false;
    if (row.expanded === true) toggle(row);
    else focus(parentOf(rows, at));
    return true;
  });
  useShortcut("Enter", "Move into the step", (event) => {
    if (!inGrid(event) || row === undefined) return false;
    if (row.kind !== "step" && row.kind !== "child") toggle(row);
    else if (view.peek().step === null) focus(at);
    else document.querySelector<HTMLElement>(".inspector [role=tab][aria-selected=true]")?.focus();
    return true;
  });
  useShortcut("Escape", "Close the step", () => (view.peek().step === null ? false : select(null, null)));
  useShortcut("!", "Next failure", () => nextFailure(1));
  useShortcut("Alt+!", "Previous failure", () => nextFailure(-1));
  useShortcut("+", "Zoom in", () => zoom(2));
  useShortcut("-", "Zoom out", () => zoom(1 / 2));
  useShortcut("0", "Reset the zoom", () => zoom(0));
  useShortcut("z", "Fold idle time, or draw it to scale", toggleFolding);
  useShortcut("f", "Follow the newest step", follow);
}

function parentOf(rows: readonly Row[], at: number): number {
  const level = rows[at]?.level ?? 1;
  for (let index = at - 1; index >= 0; index -= 1) if ((rows[index]?.level ?? 1) < level) return index;
  return at;
}
