import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Paged, ScheduleView } from "../../api/types";
import { shellWord } from "../../model/snippets";
import { msOrNull } from "../../model/times";
import { useResource } from "../../state/resource";
import { go, href, namespace, route, segment, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Empty } from "../../ui/empty";
import { Loaded } from "../../ui/loaded";
import { Pages } from "../../ui/pages";
import { useShortcut } from "../../ui/shortcuts";
import { Since, Until } from "../../ui/time";
import { ScheduleForm } from "./form";
import { RecentFires } from "./fires";
import { whenWords } from "./parts";

const ASK_S = 5;

/** The list of schedules, with their next and latest times. */
export function SchedulesPage() {
  const query = route.value.query;
  const workflow = query.get("workflow");
  const token = query.get("token");
  const [making, setMaking] = useState(false);
  const shown = useResource(
    (abort) => api.get<Paged<ScheduleView>>("/schedules", { workflow, token, size: 50 }, { abort }),
    [workflow, token, namespace.value],
    { every: ASK_S },
  );
  useShortcut("c", "New schedule", () => (can("client") ? setMaking(true) : false));
  return (
    <>
      <div class="page-head">
        <h1>Schedules</h1>
        {workflow && (
          <Chip name={workflow} onRemove={() => setQuery({ workflow: null, token: null })}>
            starts {workflow}
          </Chip>
        )}
        {can("client") && (
          <div class="page-actions">
            <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
              New schedule
            </Button>
          </div>
        )}
      </div>
      <Loaded of={shown}>
        {(page) => (
          <>
            {page.rows.length === 0 ? <NoSchedules workflow={workflow} /> : <Table rows={page.rows} />}
            <Pages next={page.next} prev={page.prev} onToken={(to) => setQuery({ token: to })} />
          </>
        )}
      </Loaded>
      {making && (
        <ScheduleForm
          was={null}
          workflow={workflow ?? ""}
          onClose={() => setMaking(false)}
          onSaved={(id) => go(href(`/schedules/${segment(id)}`))}
        />
      )}
    </>
  );
}

function NoSchedules({ workflow }: { readonly workflow: string | null }) {
  const type = workflow ?? "WORKFLOW";
  return (
    <Empty
      title={workflow ? `No schedule starts ${workflow}` : "No schedules yet"}
      command={`kagzi schedule create every-morning ${shellWord(type)} --cron "0 6 * * MON-FRI" --timezone Europe/Berlin`}
    >
      <p>A schedule starts runs of a workflow at set times. Create one here, or with:</p>
    </Empty>
  );
}

function Table({ rows }: { readonly rows: readonly ScheduleView[] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">Schedule</th>
          <th scope="col">Workflow</th>
          <th scope="col">When</th>
          <th scope="col">Next</th>
          <th scope="col">Last</th>
          <th scope="col">Recent starts</th>
          <th scope="col">Status</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={row.schedule} row={row} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row }: { readonly row: ScheduleView }) {
  const [next, last] = [msOrNull(row.next_at), msOrNull(row.last_fired_at)];
  return (
    <tr>
      <td data-label="Schedule">
        <A href={href(`/schedules/${segment(row.schedule)}`)}>{row.schedule}</A>
      </td>
      <td data-label="Workflow">
        <A href={href(`/workflows/${segment(row.workflow)}`)}>{row.workflow}</A>
      </td>
      <td data-label="When">
        <span title={row.cron ?? row.every ?? ""}>{whenWords(row)}</span>
      </td>
      <td data-label="Next">{next === null ? <span class="dim">none</span> : <Until ms={next} />}</td>
      <td data-label="Last">{last === null ? <span class="dim">never</span> : <Since ms={last} />}</td>
      <td data-label="Recent starts">{last === null ? null : <RecentFires of={row} />}</td>
      <td data-label="Status">
        {row.paused ? (
          <Badge state="paused" />
        ) : next === null ? (
          <Badge state="completed" word="over" />
        ) : (
          <Badge state="running" word="on" />
        )}
      </td>
    </tr>
  );
}
