import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { asProblem } from "../../api/client";
import { chipsOf, filterFromQuery, filterToQuery, filterToUrl, type RunFilter } from "../../model/filters";
import { serverNow } from "../../state/clock";
import { notice } from "../../state/notices";
import { go, href, namespace, route, setQuery } from "../../state/route";
import { firstPage, laterPage, tokenOfSecondPage } from "../../state/runs-sources";
import { type PageTokens, RunsStore } from "../../state/runs-store";
import { can } from "../../state/session";
import { Button } from "../../ui/button";
import { ErrorBox } from "../../ui/error-box";
import { Menu, type MenuItem } from "../../ui/menu";
import { Keys, useShortcut } from "../../ui/shortcuts";
import { Skeleton } from "../../ui/skeleton";
import { BULK, type BulkAction, type BulkAsk, BulkDialog } from "./bulk";
import { EmptyRuns } from "./empty";
import { FilterBar, ShortcutBar } from "./filter-bar";
import type { RowContext } from "./row";
import { type Ask, RunDialog } from "./run-actions";
import { Strip } from "./strip";
import { RunsTable } from "./table";

/** The list of runs, with an overview of their state. */
export function RunsPage() {
  const query = route.value.query;
  const filterText = JSON.stringify(filterToUrl(filterFromQuery(query)));
  const filter = useMemo(() => filterFromQuery(query), [filterText]);
  const token = query.get("token");
  const { store, tokens } = useRunsList(filter, filterText, token);
  const [bulk, setBulk] = useState<BulkAsk | null>(null);
  const [ask, setAsk] = useState<Ask | null>(null);
  const selection = useSelection(store);
  const open = useIds("open");
  const mayAct = can("client");
  const setFilter = (next: RunFilter, typing = false): void => {
    const kept = Object.fromEntries([...query.keys()].filter((name) => !KEPT.has(name)).map((name) => [name, null]));
    setQuery({ ...kept, ...listed(filterToUrl(next)) }, { replace: typing });
  };
  // Rows are rendered again when this object changes.
  const context = useMemo<RowContext>(
    () => ({
      selected: selection.ids,
      open: open.ids,
      onSelect: selection.select,
      onOpen: open.toggle,
      onAsk: setAsk,
      hrefWith: (name, value) => href("/runs", filterToUrl(withValue(filter, name, value))),
      mayAct,
    }),
    [selection.ids, open.ids, filter, mayAct, store],
  );
  useShortcut("n", "Show new runs", () => {
    if (store.unseen.peek() === 0) return false;
    store.join();
    return true;
  });
  const problem = store.problem.value;
  const empty = store.loaded.value && !store.stale.value && store.empty.value && token === null;
  return (
    <div class="page runs-page">
      <h1 class="visually-hidden">Runs</h1>
      <ShortcutBar filter={filter} counts={store.counts} />
      <FilterBar filter={filter} onFilter={setFilter} />
      <Strip
        ready={store.loaded.value}
        filter={filter}
        span={query.get("span") ?? "1h"}
        onSpan={(span) => setQuery({ span: span === "1h" ? null : span }, { replace: true })}
        onTime={(since, until, byEnd) =>
          setFilter(
            byEnd
              ? { ...filter, since: "", until: "", ended_since: since, ended_until: until }
              : { ...filter, ended_since: "", ended_until: "", since, until },
          )
        }
      />
      <div class="runs-toolbar">
        <span class="runs-chosen">
          {selection.ids.size > 0 ? (
            <>
              {selection.ids.size} selected{" "}
              <Button kind="quiet" onClick={selection.clear}>
                Clear
              </Button>
            </>
          ) : (
            <span class="dim">{isByEnd(filter) ? "Latest end first" : "Newest first"}</span>
          )}
        </span>
        <NewRuns store={store} />
        {mayAct && <BulkMenu filter={filter} selected={selection.ids} onAsk={setBulk} />}
      </div>
      {problem !== null && <ErrorBox problem={problem} onRetry={() => store.join()} />}
      {!store.loaded.value && problem === null && <Skeleton rows={12} label="Loading runs" />}
      {empty && <EmptyRuns filter={filter} onFilter={setFilter} />}
      {store.loaded.value && !empty && (
        <RunsTable store={store} context={context} folding={filter.parent === ""} onSelectAll={selection.selectAll} />
      )}
      <Pages store={store} filter={filter} token={token} tokens={tokens} />
      {bulk !== null && (
        <BulkDialog
          ask={bulk}
          onClose={() => setBulk(null)}
          onDone={() => {
            setBulk(null);
            selection.clear();
          }}
        />
      )}
      {ask !== null && <RunDialog ask={ask} onClose={() => setAsk(null)} />}
    </div>
  );
}

/** A separate component: the count changes more often than the rest of the page. */
function NewRuns({ store }: { readonly store: RunsStore }) {
  return (
    <span class="runs-new" role="status">
      {store.unseen.value > 0 && (
        <Button kind="primary" local onClick={() => store.join()}>
          {store.unseen.value} new <Keys keys="n" />
        </Button>
      )}
    </span>
  );
}

/** Parameters that stay in the address when the filter changes. */
const KEPT: ReadonlySet<string> = new Set(["namespace", "span"]);

function listed(pairs: readonly (readonly [string, string])[]): Record<string, string[]> {
  const values: Record<string, string[]> = {};
  for (const [name, value] of pairs) (values[name] ??= []).push(value);
  return values;
}

function withValue(filter: RunFilter, name: "label" | "workflow" | "version", value: string): RunFilter {
  if (name === "version") return { ...filter, version: value };
  if (name === "workflow") return { ...filter, workflow: [value] };
  return { ...filter, label: [...filter.label.filter((each) => each !== value), value] };
}

function isByEnd(filter: RunFilter): boolean {
  return filter.order === "ended" || filter.ended_since !== "" || filter.ended_until !== "";
}

function useRunsList(filter: RunFilter, filterText: string, token: string | null) {
  const [tokens, setTokens] = useState<PageTokens>({ next: null, prev: null });
  const store = useMemo(() => new RunsStore(), [namespace.value]);
  // Before the first paint, so that the server responds meanwhile.
  useLayoutEffect(() => {
    const query = filterToQuery(filter, serverNow());
    store.open(token === null ? firstPage(query) : laterPage(query, token, setTokens));
    return () => store.close();
  }, [store, filterText, token]);
  return { store, tokens };
}

// --- selected and expanded rows, in the address ----------------------------------------------------------------------

function useIds(name: string) {
  const text = route.value.query.get(name) ?? "";
  const ids = useMemo<ReadonlySet<string>>(() => new Set(text === "" ? [] : text.split(",")), [text]);
  const set = (next: Iterable<string>): void => setQuery({ [name]: [...next].join(",") || null }, { replace: true });
  const toggle = (id: string): void => set(ids.has(id) ? [...ids].filter((each) => each !== id) : [...ids, id]);
  return { ids, set, toggle };
}

function useSelection(store: RunsStore) {
  const { ids, set } = useIds("selected");
  const anchor = useRef<string | null>(null);
  useEffect(() => store.hold("selection", ids.size > 0), [store, ids]);
  const select = (id: string, on: boolean, range: boolean): void => {
    const next = new Set(ids);
    const shown = store.rows.peek().map((row) => row.id);
    const from = anchor.current === null ? -1 : shown.indexOf(anchor.current);
    const to = shown.indexOf(id);
    if (range && from >= 0 && to >= 0) {
      for (const each of shown.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(each);
    } else if (on) next.add(id);
    else next.delete(id);
    anchor.current = id;
    set(next);
  };
  const selectAll = (all: readonly string[], on: boolean): void =>
    set(on ? new Set([...ids, ...all]) : [...ids].filter((id) => !all.includes(id)));
  const clear = (): void => set([]);
  useShortcut("Escape", "Clear the selection", () => {
    if (ids.size === 0) {
      if (!(document.activeElement instanceof HTMLElement) || document.activeElement === document.body) return false;
      document.activeElement.blur();
    } else clear();
    return true;
  });
  return { ids, select, selectAll, clear };
}

// --- bulk actions ----------------------------------------------------------------------------------------------------

interface BulkMenuProps {
  readonly filter: RunFilter;
  readonly selected: ReadonlySet<string>;
  readonly onAsk: (ask: BulkAsk) => void;
}

function BulkMenu({ filter, selected, onAsk }: BulkMenuProps) {
  const some = selected.size > 0;
  const refused = some ? null : whyNot(filter);
  const nothing: MenuItem[] = [{ label: refused ?? "", disabled: true, onSelect: () => {} }];
  const items = (Object.keys(BULK) as BulkAction[]).map(
    (action): MenuItem => ({
      label: `${BULK[action].verb} ${some ? `${selected.size} selected` : "all matching"}…`,
      danger: BULK[action].danger,
      onSelect: () => onAsk({ action, filter, runs: some ? [...selected] : null }),
    }),
  );
  return <Menu label={some ? `Act on ${selected.size} selected` : "Act on all matching"} align="end" items={refused === null ? items : nothing} />;
}

/** The server refuses these too. */
function whyNot(filter: RunFilter): string | null {
  if (filter.id_prefix !== "") return "A search by id does not find all runs. Use other conditions, or select runs.";
  if (chipsOf({ ...filter, order: null }).length === 0) return "Set a filter first, or select runs.";
  return null;
}

// --- pages -----------------------------------------------------------------------------------------------------------

interface PagesProps {
  readonly store: RunsStore;
  readonly filter: RunFilter;
  readonly token: string | null;
  readonly tokens: PageTokens;
}

function Pages({ store, filter, token, tokens }: PagesProps) {
  const [busy, setBusy] = useState(false);
  const second = async (): Promise<void> => {
    setBusy(true);
    try {
      const next = await tokenOfSecondPage(filterToQuery(filter, serverNow()));
      if (next !== null) setQuery({ token: next, selected: null, open: null });
    } catch (error) {
      notice(asProblem(error).detail, { kind: "error" });
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => scrollTo(0, 0), [token]);
  if (token === null && !store.more.value) return null;
  if (filter.id_prefix !== "") return <p class="dim runs-pages">There are more. Type more of the id.</p>;
  const older = token === null ? () => void second() : () => setQuery({ token: tokens.next, selected: null, open: null });
  const newer = (): void => {
    if (tokens.prev === null) go(href("/runs", filterToUrl(filter)));
    else setQuery({ token: tokens.prev, selected: null, open: null });
  };
  return (
    <nav class="runs-pages" aria-label="Newer and older">
      {token !== null && (
        <>
          <Button onClick={() => go(href("/runs", filterToUrl(filter)))}>Newest</Button>
          <Button onClick={newer}>Newer</Button>
        </>
      )}
      {(token === null || tokens.next !== null) && (
        <Button busy={busy} onClick={older}>
          Older
        </Button>
      )}
    </nav>
  );
}
