import { api } from "../../api/client";
import type { Paged, RunView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { filterToQuery, shortcuts } from "../../model/filters";
import { toMs } from "../../model/times";
import { serverNow } from "../../state/clock";
import { useResource } from "../../state/resource";
import { href, namespace, segment } from "../../state/route";
import { A } from "../../ui/a";
import { Empty } from "../../ui/empty";
import { Loaded } from "../../ui/loaded";
import { Since } from "../../ui/time";

const LOOKED_AT = 100;
const ASK_S = 5;

interface Group {
  readonly type: string;
  readonly runs: readonly RunView[];
}

/** Failures of the last 24 hours, by error type. */
export function FailuresTab({ workflow }: { readonly workflow: string }) {
  const failed = useResource(
    (abort) => {
      const filter = { ...shortcuts.failedToday, workflow: [workflow] };
      const query = [...filterToQuery(filter, serverNow()), ["size", String(LOOKED_AT)]] as [string, string][];
      return api.get<Paged<RunView>>("/runs", new URLSearchParams(query), { abort });
    },
    [workflow, namespace.value],
    { every: ASK_S },
  );
  return (
    <Loaded of={failed}>
      {(page) =>
        page.rows.length === 0 ? (
          <Empty title="Nothing failed in the last 24 hours">
            <p>
              <A href={href("/runs", { workflow, status: "failed" })}>Older failures</A>
            </p>
          </Empty>
        ) : (
          <>
            {page.next !== null && <p class="dim">Of the latest {LOOKED_AT} failures.</p>}
            <Groups groups={groupsOf(page.rows)} />
            <p class="pages-nav">
              <A href={href("/runs", { workflow, status: "failed", ended_since: "24h" })}>Show them in the list of runs</A>
            </p>
          </>
        )
      }
    </Loaded>
  );
}

function groupsOf(runs: readonly RunView[]): Group[] {
  const groups = new Map<string, RunView[]>();
  for (const run of runs) {
    const type = run.error?.type ?? run.error?.code ?? "unknown";
    groups.set(type, [...(groups.get(type) ?? []), run]);
  }
  return [...groups].map(([type, members]) => ({ type, runs: members })).sort((a, b) => b.runs.length - a.runs.length);
}

function Groups({ groups }: { readonly groups: readonly Group[] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">Error</th>
          <th scope="col" class="figure">Runs</th>
          <th scope="col">Latest message</th>
          <th scope="col">Latest run</th>
        </tr>
      </thead>
      <tbody>
        {groups.map(({ type, runs }) => (
          <FailureRow key={type} type={type} runs={runs} />
        ))}
      </tbody>
    </table>
  );
}

function FailureRow({ type, runs }: Group) {
  const latest = runs[0];
  if (!latest) return null;
  return (
    <tr>
      <td data-label="Error">
        <code>{type}</code>
      </td>
      <td data-label="Runs" class="figure">{groupThousands(runs.length)}</td>
      <td data-label="Latest message" class="workflow-message">{latest.error?.message.split("\n")[0] ?? ""}</td>
      <td data-label="Latest run">
        <span>
          <A href={href(`/runs/${segment(latest.run_id)}`)} class="mono">
            {latest.workflow_id}
          </A>{" "}
          {latest.finished_at !== null && (
            <span class="dim">
              <Since ms={toMs(latest.finished_at)} />
            </span>
          )}
        </span>
      </td>
    </tr>
  );
}
