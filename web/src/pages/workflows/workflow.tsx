import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Paged, QueueView, StatsView, WorkflowTypeView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { totalsOf } from "../../model/stats";
import { toUtc } from "../../model/times";
import { serverNow } from "../../state/clock";
import { useResource } from "../../state/resource";
import { go, href, namespace, route, segment, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Bars } from "../../ui/bars";
import { Button, LinkButton } from "../../ui/button";
import { Loaded } from "../../ui/loaded";
import { useShortcut } from "../../ui/shortcuts";
import { Tabs } from "../../ui/tabs";
import { Total } from "../../ui/total";
import { FailuresTab } from "./failures";
import { dayBefore, FailedShare, HOUR_MS, HOURS, QueueCell, Took } from "./figures";
import { hourBars } from "./hour-bars";
import { LimitsDialog, limitRows } from "./limits";
import { PauseDialog } from "./pause";
import { SchemaTab } from "./schema-tab";
import { VersionsTab } from "./versions";

const ASK_S = 5;
const TABS = [
  { id: "overview", label: "Overview" },
  { id: "versions", label: "Versions" },
  { id: "failures", label: "Failures" },
  { id: "schema", label: "Schema" },
];

interface Shown {
  readonly type: WorkflowTypeView;
  readonly stats: StatsView;
  readonly queues: Paged<QueueView>;
  readonly from: number;
}

export function WorkflowPage() {
  const name = route.value.segments[1] ?? "";
  const path = `/workflows/${segment(name)}`;
  const tab = route.value.query.get("tab") ?? "overview";
  const shown = useResource<Shown>(
    async (abort) => {
      const from = dayBefore(serverNow());
      const [type, stats, queues] = await Promise.all([
        api.get<WorkflowTypeView>(path, {}, { abort }),
        api.get<StatsView>("/stats", { since: toUtc(from), step: "1h", workflow: name }, { abort }),
        api.get<Paged<QueueView>>(`/queues/${segment(name)}`, {}, { abort }),
      ]);
      return { type, stats, queues, from };
    },
    [name, namespace.value],
    { every: ASK_S },
  );
  useShortcut("s", "Start a run", () => {
    if (!can("client")) return false;
    go(href(`${path}/start`));
    return true;
  });
  return (
    <Loaded of={shown}>
      {(found) => (
        <>
          <Head type={found.type} onChanged={shown.reload} />
          <Tabs
            tabs={TABS}
            active={tab}
            onSelect={(id) => setQuery({ tab: id === "overview" ? null : id, token: null })}
            label="About the workflow"
          >
            {tab === "overview" && <Overview {...found} onChanged={shown.reload} />}
            {tab === "versions" && <VersionsTab workflow={name} />}
            {tab === "failures" && <FailuresTab workflow={name} />}
            {tab === "schema" && <SchemaTab workflow={name} />}
          </Tabs>
        </>
      )}
    </Loaded>
  );
}

function Head({ type, onChanged }: { readonly type: WorkflowTypeView; readonly onChanged: () => void }) {
  const [pausing, setPausing] = useState(false);
  return (
    <div class="page-head">
      <h1>{type.workflow}</h1>
      {type.paused && <Badge state="paused" />}
      <div class="page-actions">
        {can("client") && (
          <LinkButton kind="primary" icon="play" href={href(`/workflows/${segment(type.workflow)}/start`)}>
            Start
          </LinkButton>
        )}
        {can("admin") && (
          <Button icon={type.paused ? "play" : "pause"} onClick={() => setPausing(true)}>
            {type.paused ? "Resume" : "Pause"}
          </Button>
        )}
      </div>
      {pausing && <PauseDialog type={type} onClose={() => setPausing(false)} onChanged={onChanged} />}
    </div>
  );
}

function Overview({ type, stats, queues, from, onChanged }: Shown & { readonly onChanged: () => void }) {
  const totals = totalsOf(stats.minutes);
  const [editing, setEditing] = useState(false);
  const facts: [string, preact.ComponentChildren][] = [
    ["Started", groupThousands(totals.started)],
    ["Failed", <FailedShare totals={totals} />],
    ["Median duration", <Took ms={totals.p50} />],
    ["p95 duration", <Took ms={totals.p95} />],
    [
      "Open",
      <A href={href("/runs", { workflow: type.workflow, status: ["pending", "running", "sleeping", "paused"] })}>
        {groupThousands(type.open_runs)}
      </A>,
    ],
    ["Waiting for a worker", <QueueCell queues={queues.rows} />],
  ];
  return (
    <>
      <section class="section strip" aria-label="The last 24 hours">
        <div class="strip-head">
          <span class="strip-totals">
            <span>Ended in the last 24 hours, by hour</span>
            <Total state="completed" count={totals.completed} />
            <Total state="failed" count={totals.failed} />
          </span>
        </div>
        <Bars bars={hourBars(stats.minutes, from, HOUR_MS, HOURS)} label="Ended in the last 24 hours, by hour" />
      </section>
      <div class="grid">
        <section class="card">
          <h2>Last 24 hours</h2>
          <Facts rows={facts} />
          <p>
            <A href={href("/runs", { workflow: type.workflow })}>All runs</A>
          </p>
        </section>
        <section class="card">
          <h2>Limits and rates</h2>
          <Facts rows={limitRows(type)} />
          {can("admin") && <Button onClick={() => setEditing(true)}>Change…</Button>}
        </section>
      </div>
      {editing && <LimitsDialog type={type} onClose={() => setEditing(false)} onChanged={onChanged} />}
    </>
  );
}

function Facts({ rows }: { readonly rows: readonly (readonly [string, preact.ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}
