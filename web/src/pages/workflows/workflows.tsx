import { api } from "../../api/client";
import type { Paged, QueueView, StatsMinuteView, StatsView, VersionView, WorkflowTypeView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { totalsOf } from "../../model/stats";
import { toUtc } from "../../model/times";
import { serverNow } from "../../state/clock";
import { useResource } from "../../state/resource";
import { go, href, namespace, route, segment, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { LinkButton } from "../../ui/button";
import { Empty } from "../../ui/empty";
import { Loaded } from "../../ui/loaded";
import { Pages } from "../../ui/pages";
import { useShortcut } from "../../ui/shortcuts";
import { byType, dayBefore, FailedShare, QueueCell, StartsOfDay, Took } from "./figures";

const ASK_S = 5;
const VERSIONS_S = 60;

interface Shown {
  readonly types: Paged<WorkflowTypeView>;
  readonly stats: StatsView;
  readonly queues: Paged<QueueView>;
  readonly from: number;
}

interface Line {
  readonly type: WorkflowTypeView;
  /** Null: not among the busiest types, for which there are figures. */
  readonly minutes: readonly StatsMinuteView[] | null;
  readonly queues: readonly QueueView[];
  /** Null: not loaded yet. */
  readonly workers: number | null;
}

/** The list of workflow types, with their figures and a start button. */
export function WorkflowsPage() {
  const token = route.value.query.get("token");
  const shown = useResource<Shown>(
    async (abort) => {
      const from = dayBefore(serverNow());
      const [types, stats, queues] = await Promise.all([
        api.get<Paged<WorkflowTypeView>>("/workflows", { token, size: 50 }, { abort }),
        api.get<StatsView>("/stats", { since: toUtc(from), step: "1h" }, { abort }),
        api.get<Paged<QueueView>>("/queues", {}, { abort }),
      ]);
      return { types, stats, queues, from };
    },
    [token, namespace.value],
    { every: ASK_S },
  );
  // workers change rarely, so this is loaded last
  const versions = useResource<Paged<VersionView> | null>(
    async (abort) => (shown.value === null ? null : api.get<Paged<VersionView>>("/versions", { size: 200 }, { abort })),
    [namespace.value, shown.value === null],
    { every: VERSIONS_S },
  );
  useShortcut("j", "Next workflow", () => moveFocus(1));
  useShortcut("k", "Previous workflow", () => moveFocus(-1));
  useShortcut("s", "Start the focused workflow", () => {
    const type = document.activeElement?.closest("[data-type]")?.getAttribute("data-type");
    if (!type || !can("client")) return false;
    go(href(`/workflows/${segment(type)}/start`));
    return true;
  });
  return (
    <>
      <div class="page-head">
        <h1>Workflows</h1>
      </div>
      <Loaded of={shown}>
        {(found) => (
          <>
            {found.types.rows.length === 0 ? (
              <NoTypes />
            ) : (
              <Types lines={linesOf(found, versions.value)} from={found.from} />
            )}
            <Pages next={found.types.next} prev={found.types.prev} onToken={(to) => setQuery({ token: to })} />
          </>
        )}
      </Loaded>
    </>
  );
}

function moveFocus(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>(".workflow-link")];
  const at = links.findIndex((each) => each === document.activeElement);
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

function linesOf(found: Shown, versions: Paged<VersionView> | null): Line[] {
  const minutes = byType(found.stats.minutes);
  const none = minutes.has("") ? null : [];
  return found.types.rows.map((type) => ({
    type,
    minutes: minutes.get(type.workflow) ?? none,
    queues: found.queues.rows.filter((each) => each.workflow === type.workflow),
    workers: workersOf(type.workflow, versions),
  }));
}

/** A worker may serve several versions, so the highest count of a version is a lower bound. */
function workersOf(workflow: string, versions: Paged<VersionView> | null): number | null {
  if (versions === null) return null;
  const counts = versions.rows.filter((each) => each.workflow === workflow).map((each) => each.workers);
  return Math.max(0, ...counts);
}

/** No worker serves it, and no run of it is open, waiting, or was started within a day. */
function isStale({ type, minutes, queues, workers }: Line): boolean {
  return workers === 0 && type.open_runs === 0 && queues.length === 0 && minutes?.length === 0;
}

function NoTypes() {
  return (
    <Empty title="No workflows yet" command="kagzi dev app.py">
      <p>Workers register the workflows they serve. Start one with your code:</p>
    </Empty>
  );
}

function Types({ lines, from }: { readonly lines: readonly Line[]; readonly from: number }) {
  const stale = lines.filter(isStale);
  const others = lines.filter((line) => !isStale(line));
  return (
    <>
      {others.length > 0 && <Table lines={others} from={from} />}
      {stale.length > 0 && (
        <details class="section workflows-stale" open={others.length === 0}>
          <summary>
            {stale.length} with no worker and no runs in the last 24 hours
          </summary>
          <Table lines={stale} from={from} />
        </details>
      )}
    </>
  );
}

function Table({ lines, from }: { readonly lines: readonly Line[]; readonly from: number }) {
  return (
    <table class="table table-cards workflows">
      <thead>
        <tr>
          <th scope="col">Workflow</th>
          <th scope="col">24 hours</th>
          <th scope="col" class="figure">Started</th>
          <th scope="col" class="figure">Failed</th>
          <th scope="col" class="figure">p50</th>
          <th scope="col" class="figure">p95</th>
          <th scope="col" class="figure">Open</th>
          <th scope="col">Waiting for a worker</th>
          <th scope="col">Versions</th>
          <th scope="col" class="figure">Workers</th>
          {can("client") && <th scope="col">Action</th>}
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <TypeRow key={line.type.workflow} line={line} from={from} />
        ))}
      </tbody>
    </table>
  );
}

function TypeRow({ line, from }: { readonly line: Line; readonly from: number }) {
  const { type, minutes, queues, workers } = line;
  const totals = totalsOf(minutes ?? []);
  const path = `/workflows/${segment(type.workflow)}`;
  return (
    <tr data-type={type.workflow}>
      <td data-label="Workflow">
        <span class="row">
          <A href={href(path)} class="workflow-link">
            {type.workflow}
          </A>
          {type.paused && <Badge state="paused" />}
        </span>
      </td>
      <td data-label="24 hours">
        {minutes === null ? (
          <span class="dim">see its page</span>
        ) : (
          <StartsOfDay minutes={minutes} from={from} />
        )}
      </td>
      <td data-label="Started" class="figure">
        {minutes === null ? <span class="dim none">–</span> : groupThousands(totals.started)}
      </td>
      <td data-label="Failed" class="figure">
        <FailedShare totals={totals} />
      </td>
      <td data-label="p50" class="figure">
        <Took ms={totals.p50} />
      </td>
      <td data-label="p95" class="figure">
        <Took ms={totals.p95} />
      </td>
      <td data-label="Open" class="figure">
        <A href={href("/runs", { workflow: type.workflow, status: ["pending", "running", "sleeping", "paused"] })}>
          {groupThousands(type.open_runs)}
        </A>
      </td>
      <td data-label="Waiting for a worker">
        <QueueCell queues={queues} />
      </td>
      <td data-label="Versions">{versionWords(type)}</td>
      <td data-label="Workers" class="figure">
        {workers === null ? (
          <span class="dim none">–</span>
        ) : (
          <A href={href("/workers", { workflow: type.workflow })}>{workers}</A>
        )}
      </td>
      {can("client") && (
        <td data-label="Action">
          <LinkButton kind="quiet" icon="play" href={href(`${path}/start`)} label={`Start ${type.workflow}`}>
            Start
          </LinkButton>
        </td>
      )}
    </tr>
  );
}

/** `2 (default), 1` */
function versionWords({ versions, default_version: fallback }: WorkflowTypeView): string {
  const several = versions.length > 1;
  const words = versions.slice(0, 3).map((each) => (several && each === fallback ? `${each} (default)` : each));
  return versions.length > 3 ? `${words.join(", ")} and ${versions.length - 3} more` : words.join(", ");
}
