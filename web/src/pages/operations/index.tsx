import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { OperationView, Paged, RunView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { toMs } from "../../model/times";
import { notice } from "../../state/notices";
import { prefs } from "../../state/prefs";
import { useResource } from "../../state/resource";
import { href, route, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { ConfirmDialog } from "../../ui/dialog";
import { Empty } from "../../ui/empty";
import { ErrorBox } from "../../ui/error-box";
import { Progress } from "../../ui/progress";
import { useShortcut } from "../../ui/shortcuts";
import { Skeleton } from "../../ui/skeleton";
import { Duration, Elapsed, Since, Time } from "../../ui/time";
import { ACTION_WORDS, filterPairs, filterWords, stateOf } from "./words";

const ASK_S = 2;

/** The list of bulk operations. */
export function OperationsPage() {
  const token = route.value.query.get("token");
  const page = useResource<Paged<OperationView>>(
    (abort) => api.get("/operations", { size: 50, token }, { abort }),
    [token],
    { every: ASK_S },
  );
  useRowKeys();
  const rows = page.value?.rows ?? [];
  return (
    <div class="page">
      <header class="page-head">
        <h1>Operations</h1>
      </header>
      {page.error !== null && <ErrorBox problem={page.error} onRetry={page.reload} />}
      {page.value === null && page.error === null && <Skeleton label="Loading operations" />}
      {page.value !== null && rows.length === 0 && (
        <Empty title="No operations yet" command={'kagzi cancel --workflow WORKFLOW --status pending'}>
          <p>
            An operation cancels, terminates, retries, resumes or deletes many runs at once, in the background. Start one
            on the <A href={href("/runs")}>Runs</A> page with “Act on all matching”, or with a command:
          </p>
        </Empty>
      )}
      {rows.length > 0 && (
        <table class="table table-cards operations" data-stale={page.stale || undefined}>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Action</th>
              <th scope="col">Runs</th>
              <th scope="col" class="figure">Done</th>
              <th scope="col" class="figure">Failed</th>
              <th scope="col">Started</th>
              <th scope="col">Duration</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((operation) => (
              <OperationRow key={operation.operation_id} operation={operation} />
            ))}
          </tbody>
        </table>
      )}
      <Pages page={page.value} token={token} />
    </div>
  );
}

function OperationRow({ operation }: { readonly operation: OperationView }) {
  return (
    <tr data-operation={operation.operation_id}>
      <td data-label="State">
        <Badge {...stateOf(operation)} />
      </td>
      <td data-label="Action">
        <A class="operation-link" href={href(`/operations/${operation.operation_id}`)}>
          {ACTION_WORDS[operation.action]}
        </A>
      </td>
      <td data-label="Runs">{filterWords(operation.filter, prefs.value.zone)}</td>
      <td data-label="Done" class="number">
        {groupThousands(operation.done)}
      </td>
      <td data-label="Failed" class="number">
        {operation.failed === 0 ? <span class="dim">0</span> : <span class="operation-failed">{groupThousands(operation.failed)}</span>}
      </td>
      <td data-label="Started">
        <Since ms={toMs(operation.created_at)} />
      </td>
      <td data-label="Duration">
        <Took operation={operation} />
      </td>
    </tr>
  );
}

function Took({ operation }: { readonly operation: OperationView }) {
  const began = toMs(operation.created_at);
  return operation.finished_at === null ? <Elapsed since={began} /> : <Duration ms={toMs(operation.finished_at) - began} />;
}

function Pages({ page, token }: { readonly page: Paged<OperationView> | null; readonly token: string | null }) {
  if (page === null || (token === null && page.next === null)) return null;
  return (
    <nav class="runs-pages" aria-label="Newer and older">
      {token !== null && <Button onClick={() => setQuery({ token: page.prev })}>Newer</Button>}
      {page.next !== null && <Button onClick={() => setQuery({ token: page.next })}>Older</Button>}
    </nav>
  );
}

function useRowKeys(): void {
  const move = (by: number): boolean => {
    const links = [...document.querySelectorAll<HTMLElement>(".operation-link")];
    const at = links.findIndex((link) => link === document.activeElement);
    const to = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    to?.focus();
    return to !== undefined;
  };
  useShortcut("j", "Next operation", () => move(1));
  useShortcut("k", "Previous operation", () => move(-1));
}

/** The progress of one operation. */
export function OperationPage() {
  const id = route.value.segments[1] ?? "";
  const [every, setEvery] = useState<number | undefined>(ASK_S);
  const path = `/operations/${encodeURIComponent(id)}`;
  const resource = useResource<OperationView>(
    (abort) => api.get(path, undefined, { abort }),
    [id],
    every === undefined ? {} : { every },
  );
  const operation = resource.value;
  useEffect(() => setEvery(operation?.finished ? undefined : ASK_S), [operation?.finished, id]);
  const [stopping, setStopping] = useState(false);
  if (operation === null) {
    return resource.error === null ? <Skeleton label="Loading the operation" /> : <ErrorBox page problem={resource.error} onRetry={resource.reload} />;
  }
  const stop = async (key: string): Promise<void> => {
    await api.send("POST", `${path}/stop`, {}, { key });
    setStopping(false);
    notice("The operation stops after the current batch");
    resource.reload();
  };
  return (
    <div class="page">
      <header class="page-head">
        <h1>{ACTION_WORDS[operation.action]} runs</h1>
        <Badge {...stateOf(operation)} />
        <span class="dim">
          <Took operation={operation} />
        </span>
        <div class="page-actions">
          <Copy text={() => location.href} label="Copy link" wide kind="plain" />
          {!operation.finished && !operation.stopped && can("client") && (
            <Button kind="danger" icon="stop" onClick={() => setStopping(true)}>
              Stop…
            </Button>
          )}
        </div>
      </header>
      {resource.error !== null && <ErrorBox problem={resource.error} onRetry={resource.reload} />}
      <OperationProgress operation={operation} />
      {operation.last_error !== null && (
        <section class="section">
          <h2>Last error</h2>
          <p class="banner" data-state="failed">
            {operation.last_error}
          </p>
        </section>
      )}
      <Facts operation={operation} />
      {stopping && (
        <ConfirmDialog
          title="Stop the operation"
          verb="Stop"
          danger
          onConfirm={stop}
          onClose={() => setStopping(false)}
          touches={
            <>
              <p>
                <strong>{ACTION_WORDS[operation.action]}</strong>: {filterWords(operation.filter, prefs.value.zone)}
              </p>
              <p>{groupThousands(operation.done)} runs are done and stay that way. No other runs are changed.</p>
            </>
          }
        />
      )}
    </div>
  );
}

/** Counts the remaining runs up to a cap: the operation itself knows the total only at its end. */
function OperationProgress({ operation }: { readonly operation: OperationView }) {
  const left = useResource<Paged<RunView> | null>(
    (abort) =>
      operation.finished
        ? Promise.resolve(null)
        : api.get("/runs", [...filterPairs(operation.filter), ["size", "1"], ["count", "true"]], { abort }),
    [operation.operation_id, operation.done, operation.finished],
  );
  const rest = operation.finished ? 0 : (left.value?.count ?? null);
  const total = rest === null ? null : operation.matched + rest;
  return (
    <section class="section card operation-progress">
      <Progress
        value={operation.finished && !operation.stopped ? 1 : total === null || total === 0 ? null : operation.matched / total}
        label="Runs done"
      />
      <p>
        <strong>{groupThousands(operation.done)}</strong> done,{" "}
        <strong class={operation.failed > 0 ? "operation-failed" : ""}>{groupThousands(operation.failed)}</strong> failed
        {rest !== null && rest > 0 && (
          <span class="dim">
            , about {groupThousands(rest)}
            {left.value?.capped ? "+" : ""} left
          </span>
        )}
      </p>
    </section>
  );
}

function Facts({ operation }: { readonly operation: OperationView }) {
  return (
    <dl class="facts">
      <dt>Runs</dt>
      <dd>
        {filterWords(operation.filter, prefs.value.zone)}
        {operation.filter.run.length === 0 && (
          <>
            {" "}
            (<A href={href("/runs", filterPairs(operation.filter))}>show matching runs</A>)
          </>
        )}
      </dd>
      {operation.filter.run.length > 0 && (
        <>
          <dt>Selected runs</dt>
          <dd>
            <ul>
              {operation.filter.run.map((run) => (
                <li key={run}>
                  <A class="mono" href={href(`/runs/${run}`)}>
                    {run}
                  </A>
                </li>
              ))}
            </ul>
          </dd>
        </>
      )}
      <dt>Reason</dt>
      <dd>{operation.reason ?? <span class="dim">none</span>}</dd>
      <dt>Started</dt>
      <dd>
        <Time ms={toMs(operation.created_at)} />
      </dd>
      {operation.finished_at !== null && (
        <>
          <dt>Finished</dt>
          <dd>
            <Time ms={toMs(operation.finished_at)} />
          </dd>
        </>
      )}
      <dt>Operation</dt>
      <dd class="mono">
        {operation.operation_id} <Copy text={operation.operation_id} label="Copy operation id" />
      </dd>
    </dl>
  );
}
