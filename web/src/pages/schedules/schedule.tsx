import { api } from "../../api/client";
import type { Paged, ScheduleView, TimeView } from "../../api/types";
import { RawJson } from "../../model/json-text";
import { msOrNull, toMs } from "../../model/times";
import { useResource } from "../../state/resource";
import { href, namespace, route, segment } from "../../state/route";
import { A } from "../../ui/a";
import { Badge } from "../../ui/badge";
import { Chip } from "../../ui/chip";
import { JsonTree } from "../../ui/json-tree";
import { Loaded } from "../../ui/loaded";
import { Time } from "../../ui/time";
import { Actions } from "./actions";
import { type Fired, Fires, firesOf } from "./fires";
import { whenWords } from "./parts";
import { Times } from "./preview";

const ASK_S = 5;
const FIRES = 20;
const NEXT = 5;

interface Shown extends Fired {
  readonly schedule: ScheduleView;
}

export function SchedulePage() {
  const id = route.value.segments[1] ?? "";
  const path = `/schedules/${segment(id)}`;
  const shown = useResource<Shown>(
    async (abort) => {
      const [schedule, fired] = await Promise.all([
        api.get<ScheduleView>(path, {}, { abort, raw: ["input", "context"] }),
        firesOf(id, FIRES, abort),
      ]);
      return { schedule, ...fired };
    },
    [id, namespace.value],
    { every: ASK_S },
  );
  return (
    <Loaded of={shown}>
      {({ schedule, fires, runs }) => (
        <>
          <div class="page-head">
            <h1>{schedule.schedule}</h1>
            {schedule.paused ? <Badge state="paused" /> : <Badge state="running" word="on" />}
            <span>{whenWords(schedule)}</span>
            <Actions schedule={schedule} onChanged={shown.reload} />
          </div>
          {schedule.paused && schedule.paused_reason && <p class="section">Paused: {schedule.paused_reason}</p>}
          <Fires fires={fires.rows} runs={runs.rows} jitter={schedule.jitter} />
          <div class="grid">
            <section class="card">
              <h2>Next times</h2>
              {schedule.paused && <p class="dim">Paused: these times start no runs until you resume the schedule.</p>}
              <NextTimes of={schedule} />
            </section>
            <Facts schedule={schedule} />
          </div>
        </>
      )}
    </Loaded>
  );
}

/** Future times change only after one has passed, or after an edit. */
function NextTimes({ of }: { readonly of: ScheduleView }) {
  const times = useResource(
    (abort) => api.get<Paged<TimeView>>(`/schedules/${segment(of.schedule)}/preview`, { count: NEXT }, { abort }),
    [of.schedule, namespace.value, of.next_at, of.updated_at],
  );
  return (
    <Loaded of={times}>
      {(page) =>
        page.rows.length === 0 ? <p class="dim">No more times.</p> : <Times times={page.rows} cron={of.cron} />
      }
    </Loaded>
  );
}

function Facts({ schedule }: { readonly schedule: ScheduleView }) {
  const rows: [string, preact.ComponentChildren][] = [
    ["Workflow", <A href={href(`/workflows/${segment(schedule.workflow)}`)}>{schedule.workflow}</A>],
    ["Expression", <code>{schedule.cron ?? `every ${schedule.every}`}</code>],
    ["Time zone", schedule.cron === null ? "" : schedule.timezone],
    ["Overlap", schedule.overlap.replace("_", " ")],
    ["Catch-up", `at most ${schedule.max_catchup}, from the last ${schedule.catchup_window}`],
    ["Jitter", schedule.jitter === "0s" ? "" : schedule.jitter],
    ["Version", schedule.version ?? ""],
    ["Priority", schedule.priority === 0 ? "" : String(schedule.priority)],
    ["Timeout", schedule.timeout ?? ""],
    ["From", timeOf(schedule.start_at)],
    ["Until", timeOf(schedule.end_at)],
    ["Updated", timeOf(schedule.updated_at)],
  ];
  const labels = Object.entries(schedule.labels);
  const input = schedule.input instanceof RawJson ? schedule.input.text : "null";
  return (
    <section class="card stack">
      <dl class="facts">
        {rows
          .filter(([, value]) => value !== "" && value !== null)
          .map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
        {labels.length > 0 && (
          <>
            <dt>Labels</dt>
            <dd class="row">
              {labels.map(([name, value]) => (
                <Chip key={name} href={href("/runs", { label: `${name}=${value}` })}>
                  {name}={value}
                </Chip>
              ))}
            </dd>
          </>
        )}
        <dt>Runs</dt>
        <dd>
          <A href={href("/runs", { schedule: schedule.schedule })}>Runs it started</A>
        </dd>
      </dl>
      {input !== "null" && (
        <div>
          <h3>Input of each run</h3>
          <JsonTree text={input} label="Input of each run" />
        </div>
      )}
    </section>
  );
}

function timeOf(at: string | null) {
  const ms = msOrNull(at);
  return ms === null ? null : <Time ms={toMs(at ?? "")} />;
}
