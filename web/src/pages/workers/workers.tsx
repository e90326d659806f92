import { api } from "../../api/client";
import type { Paged, QueueView, WorkerView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { toMs } from "../../model/times";
import { useResource } from "../../state/resource";
import { href, namespace, route, segment, setQuery } from "../../state/route";
import { A } from "../../ui/a";
import { Chip } from "../../ui/chip";
import { Empty } from "../../ui/empty";
import { Loaded } from "../../ui/loaded";
import { Since } from "../../ui/time";
import { Pages } from "../../ui/pages";
import { Slots, WorkerStatus, servedText } from "./parts";
import { WaitingBanners } from "./waiting";

const ASK_S = 2;
const STATUSES = ["online", "draining", "offline"] as const;

interface Shown {
  readonly workers: Paged<WorkerView>;
  readonly queues: Paged<QueueView>;
}

/** The list of workers, and of types without workers. */
export function WorkersPage() {
  const query = route.value.query;
  const status = query.get("status");
  const workflow = query.get("workflow");
  const token = query.get("token");
  const shown = useResource<Shown>(
    async (abort) => {
      const [workers, queues] = await Promise.all([
        api.get<Paged<WorkerView>>("/workers", { status, workflow, token, size: 50 }, { abort }),
        api.get<Paged<QueueView>>("/queues", {}, { abort }),
      ]);
      return { workers, queues };
    },
    [status, workflow, token, namespace.value],
    { every: ASK_S },
  );
  return (
    <>
      <div class="page-head">
        <h1>Workers</h1>
        <div class="row" role="group" aria-label="Status">
          <Chip onClick={() => setQuery({ status: null, token: null })} selected={status === null}>
            All
          </Chip>
          {STATUSES.map((each) => (
            <Chip key={each} onClick={() => setQuery({ status: each, token: null })} selected={status === each}>
              {each}
            </Chip>
          ))}
        </div>
        {workflow && (
          <Chip name={workflow} onRemove={() => setQuery({ workflow: null, token: null })}>
            serves {workflow}
          </Chip>
        )}
      </div>
      <Loaded of={shown}>
        {({ workers, queues }) => (
          <>
            <WaitingBanners queues={queues.rows} />
            {workers.rows.length === 0 ? (
              <NoWorkers filtered={status !== null || workflow !== null} />
            ) : (
              <Table rows={workers.rows} />
            )}
            <Pages next={workers.next} prev={workers.prev} onToken={(to) => setQuery({ token: to })} />
          </>
        )}
      </Loaded>
    </>
  );
}

function NoWorkers({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No matching workers">
        <p>
          No worker matches the filter. <A href={href("/workers")}>Show all</A>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No workers yet" command="kagzi worker app.py">
      <p>Runs wait until a worker serves their workflow. Start one:</p>
    </Empty>
  );
}

function Table({ rows }: { readonly rows: readonly WorkerView[] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">Worker</th>
          <th scope="col">Status</th>
          <th scope="col">Host</th>
          <th scope="col">Slots</th>
          <th scope="col">Serves</th>
          <th scope="col">Build</th>
          <th scope="col">Ended runs</th>
          <th scope="col">Last seen</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((worker) => (
          <tr key={worker.worker_id}>
            <td data-label="Worker">
              <A href={href(`/workers/${segment(worker.worker_id)}`)} class="mono" title={worker.worker_id}>
                {worker.worker_id.slice(0, 8)}
              </A>
            </td>
            <td data-label="Status">
              <WorkerStatus status={worker.status} />
            </td>
            <td data-label="Host">
              <span>
                {worker.hostname} <span class="dim">pid {worker.pid}</span>
              </span>
            </td>
            <td data-label="Slots">
              <A href={href("/runs", { worker: worker.worker_id })} title="Its current runs">
                <Slots active={worker.active} most={worker.max_concurrent} />
              </A>
            </td>
            <td data-label="Serves">{servedText(worker.workflows)}</td>
            <td data-label="Build">
              <code title={worker.build_id}>{worker.build_id.slice(0, 12)}</code>
            </td>
            <td data-label="Ended runs">
              <span class="nowrap">
                {groupThousands(worker.completed)}
                {worker.failed > 0 && <span class="dim">, {groupThousands(worker.failed)} failed</span>}
              </span>
            </td>
            <td data-label="Last seen">
              <Since ms={toMs(worker.last_seen_at)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
