import { api } from "../../api/client";
import type { FireView, Paged, RunView, ScheduleView } from "../../api/types";
import { formatTime, toMs } from "../../model/times";
import { prefs } from "../../state/prefs";
import { useResource } from "../../state/resource";
import { href, namespace, segment } from "../../state/route";
import { A } from "../../ui/a";
import { Icon } from "../../ui/icon";
import { Time } from "../../ui/time";
import { FIRE_LOOKS, fireReason, fireState, type FireState } from "./parts";

interface FiresProps {
  readonly fires: readonly FireView[];
  readonly runs: readonly RunView[];
  readonly jitter: string;
}

export interface Fired {
  readonly fires: Paged<FireView>;
  readonly runs: Paged<RunView>;
}

/** The latest times of a schedule, and the runs that they started. */
export async function firesOf(schedule: string, size: number, abort: AbortSignal): Promise<Fired> {
  const [fires, runs] = await Promise.all([
    api.get<Paged<FireView>>(`/schedules/${segment(schedule)}/fires`, { size }, { abort }),
    api.get<Paged<RunView>>("/runs", { schedule, size: 2 * size }, { abort }),
  ]);
  return { fires, runs };
}

const IN_A_LIST = 10;

/** For a row of a list: loaded once, and again after it has fired. */
export function RecentFires({ of }: { readonly of: ScheduleView }) {
  const loaded = useResource(
    (abort) => firesOf(of.schedule, IN_A_LIST, abort),
    [of.schedule, of.last_fired_at, namespace.value],
  );
  if (loaded.value === null) return <span class="dim">…</span>;
  const { fires, runs } = loaded.value;
  return fires.rows.length === 0 ? null : <Dots fires={fires.rows} runs={runs.rows} jitter={of.jitter} />;
}

/** Oldest first. */
function Dots({ fires, runs, jitter }: FiresProps) {
  const runOf = finder(runs);
  return (
    <ul class="dots">
      {[...fires].reverse().map((fire) => (
        <li key={`${fire.nominal_at} ${fire.at}`}>
          <Dot fire={fire} state={fireState(fire, runOf(fire), jitter)} reason={fireReason(fire, runOf(fire))} />
        </li>
      ))}
    </ul>
  );
}

function finder(runs: readonly RunView[]): (fire: FireView) => RunView | undefined {
  const byId = new Map(runs.map((run) => [run.run_id, run]));
  return (fire) => (fire.run_id === null ? undefined : byId.get(fire.run_id));
}

/** The latest times: as dots, oldest first, and as a table with reasons. */
export function Fires({ fires, runs, jitter }: FiresProps) {
  const runOf = finder(runs);
  if (fires.length === 0) {
    return (
      <section class="section">
        <h2>Recent starts</h2>
        <p class="dim">It has not fired yet.</p>
      </section>
    );
  }
  return (
    <section class="section">
      <h2>Last {fires.length === 1 ? "fire" : `${fires.length} fires`}</h2>
      <Dots fires={fires} runs={runs} jitter={jitter} />
      <details>
        <summary>Details</summary>
        <table class="table table-cards">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Result</th>
              <th scope="col">Reason</th>
              <th scope="col">Run</th>
            </tr>
          </thead>
          <tbody>
            {fires.map((fire) => (
              <tr key={`${fire.nominal_at} ${fire.at}`}>
                <td data-label="Time">
                  <Time ms={toMs(fire.nominal_at)} />
                </td>
                <td data-label="Result">
                  <FireBadge state={fireState(fire, runOf(fire), jitter)} />
                </td>
                <td data-label="Reason">{fireReason(fire, runOf(fire))}</td>
                <td data-label="Run">
                  {fire.run_id && (
                    <A href={href(`/runs/${segment(fire.run_id)}`)} class="mono">
                      {fire.run_id.slice(0, 13)}
                    </A>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </section>
  );
}

function FireBadge({ state }: { readonly state: FireState }) {
  const look = FIRE_LOOKS[state];
  return (
    <span class="badge" data-state={look.state}>
      <Icon name={look.icon} />
      {state}
    </span>
  );
}

interface DotProps {
  readonly fire: FireView;
  readonly state: FireState;
  readonly reason: string;
}

function Dot({ fire, state, reason }: DotProps) {
  const look = FIRE_LOOKS[state];
  const at = formatTime(toMs(fire.nominal_at), prefs.value.zone, "datetime");
  const title = `${at}: ${state}${reason ? `, ${reason}` : ""}`;
  if (fire.run_id === null) {
    return (
      <span class="dot" data-state={look.state} title={title}>
        <Icon name={look.icon} label={title} />
      </span>
    );
  }
  return (
    <A class="dot" href={href(`/runs/${segment(fire.run_id)}`)} title={title} label={title}>
      <span class="dot-ground" data-state={look.state}>
        <Icon name={look.icon} />
      </span>
    </A>
  );
}
