import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Paged, RunView, WorkerEventView, WorkerView } from "../../api/types";
import { stateOfRun } from "../../model/statuses";
import { toMs } from "../../model/times";
import { notice } from "../../state/notices";
import { useResource } from "../../state/resource";
import { href, namespace, route, segment } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Copy } from "../../ui/copy";
import { ConfirmDialog } from "../../ui/dialog";
import { Loaded } from "../../ui/loaded";
import { Elapsed, Since, Time } from "../../ui/time";
import { Slots, WorkerStatus } from "./parts";

const ASK_S = 2;
const SHOWN = 51;

interface Shown {
  readonly worker: WorkerView;
  readonly events: Paged<WorkerEventView>;
  readonly held: Paged<RunView>;
}

export function WorkerPage() {
  const id = route.value.segments[1] ?? "";
  const path = `/workers/${segment(id)}`;
  const shown = useResource<Shown>(
    async (abort) => {
      const [worker, events, held] = await Promise.all([
        api.get<WorkerView>(path, {}, { abort }),
        api.get<Paged<WorkerEventView>>(`${path}/events`, { size: 50 }, { abort }),
        api.get<Paged<RunView>>("/runs", { worker: id, size: SHOWN }, { abort }),
      ]);
      return { worker, events, held };
    },
    [id, namespace.value],
    { every: ASK_S },
  );
  return (
    <Loaded of={shown}>
      {({ worker, events, held }) => (
        <>
          <Head worker={worker} onChanged={shown.reload} />
          <div class="grid">
            <Facts worker={worker} />
            <Held worker={worker} held={held} />
          </div>
          <Events events={events.rows} />
        </>
      )}
    </Loaded>
  );
}

function Head({ worker, onChanged }: { readonly worker: WorkerView; readonly onChanged: () => void }) {
  const [draining, setDraining] = useState(false);
  const drain = async (key: string): Promise<void> => {
    await api.send("POST", `/workers/${segment(worker.worker_id)}/drain`, {}, { key });
    setDraining(false);
    notice(`${worker.worker_id.slice(0, 8)} is draining and accepts no more runs`);
    onChanged();
  };
  return (
    <div class="page-head">
      <h1 class="mono" title={worker.worker_id}>
        {worker.worker_id.slice(0, 8)}
      </h1>
      <Copy text={worker.worker_id} label="Copy worker id" />
      <WorkerStatus status={worker.status} />
      <span class="dim">
        {worker.hostname}, pid {worker.pid}, last seen <Since ms={toMs(worker.last_seen_at)} />
      </span>
      {can("admin") && worker.status === "online" && (
        <div class="page-actions">
          <Button onClick={() => setDraining(true)}>Drain…</Button>
        </div>
      )}
      {draining && (
        <ConfirmDialog
          title={`Drain ${worker.worker_id.slice(0, 8)}?`}
          verb="Drain"
          onConfirm={drain}
          onClose={() => setDraining(false)}
          touches={
            <>
              <p>
                {worker.hostname}, pid {worker.pid}, accepts no more runs. Its <strong>{worker.active}</strong> current{" "}
                {worker.active === 1 ? "run continues" : "runs continue"} until its grace period ends. Then it stops.
              </p>
              <p>
                Other workers then continue unfinished runs from the last recorded step. No run is lost.
              </p>
            </>
          }
        />
      )}
    </div>
  );
}

function Facts({ worker }: { readonly worker: WorkerView }) {
  return (
    <section class="card">
      <dl class="facts">
        <dt>Slots</dt>
        <dd>
          <Slots active={worker.active} most={worker.max_concurrent} />
        </dd>
        <dt>Ended runs</dt>
        <dd>
          {worker.completed}, {worker.failed} of them failed
        </dd>
        <dt>Registered</dt>
        <dd>
          <Time ms={toMs(worker.registered_at)} />
        </dd>
        <dt>Build</dt>
        <dd>
          <code>{worker.build_id}</code>
        </dd>
        <dt>SDK</dt>
        <dd>{worker.sdk_version}</dd>
        <dt>Serves</dt>
        <dd>
          <ul>
            {worker.workflows.map((each) => (
              <li key={`${each.workflow} ${each.version}`}>
                <A href={href(`/workflows/${segment(each.workflow)}`)}>{each.workflow}</A>{" "}
                <span class="dim">v{each.version}</span>
              </li>
            ))}
          </ul>
        </dd>
        {Object.keys(worker.labels).length > 0 && (
          <>
            <dt>Labels</dt>
            <dd class="row">
              {Object.entries(worker.labels).map(([name, value]) => (
                <Chip key={name}>
                  {name}={value}
                </Chip>
              ))}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Held({ worker, held }: { readonly worker: WorkerView; readonly held: Paged<RunView> }) {
  return (
    <section class="card">
      <h2>Current runs</h2>
      {held.rows.length === 0 && <p class="dim">None.</p>}
      <ul class="list-rows">
        {held.rows.map((run) => (
          <li key={run.run_id} class="row">
            <Badge state={stateOfRun(run)} />
            <A href={href(`/runs/${segment(run.run_id)}`)}>{run.workflow_id}</A>
            <span class="dim">{run.workflow}</span>
            {run.started_at && <Elapsed since={toMs(run.started_at)} />}
          </li>
        ))}
      </ul>
      <p>
        <A href={href("/runs", { worker: worker.worker_id })}>
          {held.next === null ? "Show in the list of runs" : "Show all"}
        </A>
      </p>
    </section>
  );
}

function Events({ events }: { readonly events: readonly WorkerEventView[] }) {
  return (
    <section class="section">
      <h2>Events</h2>
      <table class="table table-cards">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Event</th>
            <th scope="col">Details</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event, index) => (
            <tr key={`${event.at} ${index}`}>
              <td data-label="Time">
                <Time ms={toMs(event.at)} />
              </td>
              <td data-label="Event">{event.kind}</td>
              <td data-label="Details">{event.detail}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
