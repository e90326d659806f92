import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Paged, RunView, WorkflowTypeView } from "../../api/types";
import { type Chip as FilterChip, chipsOf, EVERY_RUN, filterToQuery, type RunFilter } from "../../model/filters";
import { shellWord } from "../../model/snippets";
import { serverNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { useResource } from "../../state/resource";
import { namespace } from "../../state/route";
import { Button } from "../../ui/button";
import { Empty } from "../../ui/empty";

/** Why the list is empty, with the command or button that changes it. */
export function EmptyRuns({ filter, onFilter }: { filter: RunFilter; onFilter: (filter: RunFilter) => void }) {
  return chipsOf(filter).length > 0 ? <NoHit filter={filter} onFilter={onFilter} /> : <NoRun />;
}

function NoRun() {
  const types = useResource<Paged<WorkflowTypeView>>((abort) => api.get("/workflows", { size: 1 }, { abort }), [], { every: 5 });
  if (types.value === null) return null;
  const first = types.value.rows[0];
  if (first === undefined) {
    return (
      <Empty title="No worker has registered a workflow yet" command="kagzi dev app.py">
        <p>Runs appear here once there are any. Run your code with a local server and worker:</p>
      </Empty>
    );
  }
  const within = namespace.value === "default" ? "" : ` --namespace ${shellWord(namespace.value)}`;
  return (
    <Empty title="No runs yet" command={`kagzi start ${shellWord(first.workflow)}${within}`}>
      <p>
        <strong>{first.workflow}</strong> is registered. Start a run of it:
      </p>
    </Empty>
  );
}

/** The most chips that are probed, with a request of one row each. */
const PROBED = 4;

function NoHit({ filter, onFilter }: { filter: RunFilter; onFilter: (filter: RunFilter) => void }) {
  const chips = chipsOf(filter, prefs.value.zone);
  const hits = useHits(filter, chips);
  const helpful = chips.filter((chip) => hits.get(chip.key) === true);
  return (
    <Empty title="No matching runs">
      <p>
        {helpful.length > 0
          ? "There are runs if you drop one of these conditions:"
          : chips.length > 1
            ? "No run matches all of these conditions. Drop one of them:"
            : "Drop the condition to see all runs:"}
      </p>
      <p class="row">
        {(helpful.length > 0 ? helpful : chips).map((chip) => (
          <Button key={chip.key} onClick={() => onFilter(chip.without)}>
            Drop {chip.label}
          </Button>
        ))}
        <Button onClick={() => onFilter(EVERY_RUN)}>Show all runs</Button>
      </p>
    </Empty>
  );
}

/** Which of the chips hides runs: by key, once known. */
function useHits(filter: RunFilter, chips: readonly FilterChip[]): ReadonlyMap<string, boolean> {
  const [hits, setHits] = useState<ReadonlyMap<string, boolean>>(new Map());
  const asked = JSON.stringify(filter);
  useEffect(() => {
    const abort = new AbortController();
    setHits(new Map());
    const look = async (): Promise<void> => {
      for (const chip of chips.slice(0, PROBED)) {
        const query = [...filterToQuery(chip.without, serverNow()), ["size", "1"] as [string, string]];
        const page = await api.get<Paged<RunView>>("/runs", query, { abort: abort.signal });
        setHits((known) => new Map(known).set(chip.key, page.rows.length > 0));
      }
    };
    look().catch(() => {}); // only a hint: without it all chips are offered
    return () => abort.abort();
  }, [asked]);
  return hits;
}
