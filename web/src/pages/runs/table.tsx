import { useMemo, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { api } from "../../api/client";
import type { Paged, RunView } from "../../api/types";
import { useResource } from "../../state/resource";
import { go, href } from "../../state/route";
import type { RunRow, RunsStore } from "../../state/runs-store";
import { Checkbox } from "../../ui/field";
import { useShortcut } from "../../ui/shortcuts";
import { foldRows, type Line } from "./folding";
import { GroupLine, RunLine, type RowContext } from "./row";

interface RunsTableProps {
  readonly store: RunsStore;
  readonly context: RowContext;
  /** Whether children are folded under their parents; not in a list of children. */
  readonly folding: boolean;
  readonly onSelectAll: (ids: readonly string[], on: boolean) => void;
}

const HEADINGS = ["Status", "Workflow", "ID", "Activity", "Attempt", "Age", "Duration", "Version", "Labels"] as const;

export function RunsTable({ store, context, folding, onSelectAll }: RunsTableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const rows = store.rows.value;
  const lines = useMemo(
    () => (folding ? foldRows(rows, context.open) : rows.map(plainLine)),
    [rows, folding, context.open],
  );
  useRowKeys(body, context);
  const ids = rows.map((row) => row.id);
  const chosen = ids.filter((id) => context.selected.has(id)).length;
  return (
    <div class="runs-scroll" data-stale={store.stale.value || undefined}>
      <table
        role="table"
        class="runs-table"
        aria-label="Runs"
        data-one-attempt={store.oneAttempt.value || undefined}
        data-one-version={store.oneVersion.value || undefined}
      >
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" class="runs-select">
              <Checkbox
                label="Select all on this page"
                checked={chosen > 0 && chosen === ids.length}
                mixed={chosen > 0 && chosen < ids.length}
                onCheck={(on) => onSelectAll(ids, on)}
              />
            </th>
            {HEADINGS.map((heading) => (
              <th role="columnheader" key={heading} scope="col">
                {heading}
              </th>
            ))}
            <th role="columnheader" class="runs-menu">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody
          role="rowgroup"
          ref={body}
          onPointerEnter={() => store.hold("pointer", true)}
          onPointerMove={() => store.hold("pointer", true)}
          onPointerLeave={() => store.hold("pointer", false)}
          onFocusIn={() => store.hold("focus", true)}
          onFocusOut={(event) => {
            if (!body.current?.contains(event.relatedTarget as Node | null)) store.hold("focus", false);
          }}
          onClick={openRow}
        >
          {lines.flatMap((line) => draw(line, context, folding, ids))}
        </tbody>
      </table>
    </div>
  );
}

function plainLine(row: RunRow): Line {
  return { kind: "run", key: row.id, row, level: 0, children: 0 };
}

function draw(line: Line, context: RowContext, folding: boolean, shown: readonly string[]) {
  if (line.kind === "group") return [<GroupLine key={line.key} line={line} context={context} />];
  const drawn = [
    <RunLine key={line.key} row={line.row} level={line.level} childRows={line.children} context={context} />,
  ];
  if (folding && context.open.has(line.row.id)) {
    drawn.push(<OtherChildren key={`more ${line.key}`} parent={line.row.id} shown={shown} context={context} />);
  }
  return drawn;
}

const CHILDREN = 50;

/** Children that are not on this page of the list: loaded when their parent is expanded. */
function OtherChildren({ parent, shown, context }: { parent: string; shown: readonly string[]; context: RowContext }) {
  const children = useResource<Paged<RunView>>(
    (abort) => api.get(`/runs/${parent}/children`, { size: CHILDREN }, { abort }),
    [parent],
    { every: 5 },
  );
  const rows = children.value?.rows.filter((run) => !shown.includes(run.run_id)) ?? [];
  return (
    <>
      {rows.map((run) => (
        <OtherChild key={run.run_id} run={run} context={context} />
      ))}
      {children.value !== null && children.value.next !== null && (
        <tr role="row" class="runs-row runs-group">
          <td role="cell" class="runs-select" />
          <td role="cell" colSpan={10} class="runs-group-cell">
            <a href={href("/runs", { parent })}>Show all children</a>
          </td>
        </tr>
      )}
    </>
  );
}

function OtherChild({ run, context }: { readonly run: RunView; readonly context: RowContext }) {
  const row = useMemo(() => ({ id: run.run_id, run: signal(run), gone: signal(false) }), [run.run_id]);
  row.run.value = run;
  return <RunLine row={row} level={1} childRows={0} context={context} />;
}

/** A click outside the controls of a row opens the run, unless it ends a text selection. */
function openRow(event: MouseEvent): void {
  const target = event.target as HTMLElement;
  if (event.defaultPrevented || event.button !== 0 || target.closest("a, button, label, input, .menu, .runs-select")) return;
  if (getSelection()?.toString()) return;
  const id = target.closest<HTMLElement>("[data-run]")?.dataset["run"];
  if (id === undefined) return;
  if (event.metaKey || event.ctrlKey) open(href(`/runs/${id}`), "_blank", "noopener");
  else go(href(`/runs/${id}`));
}

// --- keys ------------------------------------------------------------------------------------------------------------

function useRowKeys(body: { current: HTMLElement | null }, context: RowContext): void {
  const links = (): HTMLElement[] => [...(body.current?.querySelectorAll<HTMLElement>(".runs-link") ?? [])];
  const at = (): number => links().findIndex((link) => rowOf(link)?.contains(document.activeElement));
  const current = (): HTMLElement | null => rowOf(links()[at()] ?? null);
  const move = (by: number): boolean => {
    const all = links();
    const here = at();
    const to = all[here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by];
    to?.focus();
    rowOf(to ?? null)?.scrollIntoView({ block: "nearest" });
    return to !== undefined;
  };
  useShortcut("j", "Next run", () => move(1));
  useShortcut("k", "Previous run", () => move(-1));
  useShortcut("x", "Select the run", () => {
    const id = current()?.dataset["run"];
    if (id === undefined) return false;
    context.onSelect(id, !context.selected.has(id), false);
    return true;
  });
  useShortcut("X", "Select up to the run", () => {
    const id = current()?.dataset["run"];
    if (id === undefined) return false;
    context.onSelect(id, true, true);
    return true;
  });
  useShortcut(".", "Actions for the run", () => {
    const button = current()?.querySelector<HTMLElement>(".runs-menu button");
    button?.click();
    return button !== null && button !== undefined;
  });
}

function rowOf(element: HTMLElement | null): HTMLElement | null {
  return element?.closest<HTMLElement>("[data-run]") ?? null;
}
