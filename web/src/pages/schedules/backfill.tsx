import { useEffect, useState } from "preact/hooks";
import { api, asProblem } from "../../api/client";
import type { FireView, Paged, TimeView } from "../../api/types";
import { toMs, toUtc } from "../../model/times";
import { serverNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { segment } from "../../state/route";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, TextInput } from "../../ui/field";
import type { ActionProps } from "./actions";
import { fromWall, toWall, zoneLabel } from "./parts";
import { TimeLine } from "./preview";

const DAY_MS = 86_400_000;
const MOST = 1000;
const SHOWN = 20;
const PAUSE_MS = 300;

/** Starts runs for past times that have none; shows the times first. */
export function BackfillDialog({ schedule, onClose, onDone }: ActionProps) {
  const zone = prefs.value.zone;
  const [from, setFrom] = useState(() => toWall(serverNow() - DAY_MS, zone));
  const [to, setTo] = useState(() => toWall(serverNow(), zone));
  const [begin, end] = [fromWall(from, zone), fromWall(to, zone)];
  const { times, wrong } = useTimes(schedule.schedule, begin, end);
  const act = async (key: string): Promise<void> => {
    const path = `/schedules/${segment(schedule.schedule)}/backfill`;
    const body = { from: toUtc(begin ?? 0), to: toUtc(end ?? 0) };
    const fires = await api.send<Paged<FireView>>("POST", path, body, { key });
    const started = fires.rows.filter((fire) => fire.run_id !== null).length;
    onDone(`Backfilled: ${started} of ${fires.rows.length} times started a run`);
  };
  const problem =
    begin === null || end === null ? "Enter both times." : begin >= end ? "The end must be after the start." : wrong;
  return (
    <ConfirmDialog
      title={`Backfill ${schedule.schedule}`}
      verb={times === null ? "Backfill" : `Backfill ${times.length} ${times.length === 1 ? "time" : "times"}`}
      onConfirm={act}
      onClose={onClose}
      disabled={problem !== "" || times === null || times.length === 0 || times.length > MOST}
      touches={
        <p>
          Starts a run of <strong>{schedule.workflow}</strong> for each of these times that has none. Times that
          already have a run are skipped.
        </p>
      }
    >
      <Field label={`From (${zoneLabel(zone)})`}>
        <TextInput type="datetime-local" value={from} onText={setFrom} required />
      </Field>
      <Field label={`Until, exclusive (${zoneLabel(zone)})`} error={problem === "" ? null : problem}>
        <TextInput type="datetime-local" value={to} onText={setTo} required />
      </Field>
      {problem === "" && times !== null && <BackfillTimes times={times} own={schedule.cron !== null} />}
    </ConfirmDialog>
  );
}

function BackfillTimes({ times, own }: { readonly times: readonly TimeView[]; readonly own: boolean }) {
  if (times.length === 0) return <p role="status">The schedule has no times in this range.</p>;
  if (times.length > MOST)
    return <p role="status">There are more than {MOST} times in this range. Choose a shorter one.</p>;
  return (
    <div role="status">
      <p>
        {times.length} {times.length === 1 ? "time" : "times"}:
      </p>
      <ul class="times">
        {times.slice(0, SHOWN).map((each) => (
          <TimeLine key={each.utc} time={each} own={own} />
        ))}
      </ul>
      {times.length > SHOWN && <p class="dim">and {times.length - SHOWN} more</p>}
    </div>
  );
}

/** The times from `begin` to `end`; one more than the limit means that there are more. */
function useTimes(
  id: string,
  begin: number | null,
  end: number | null,
): { times: readonly TimeView[] | null; wrong: string } {
  const [times, setTimes] = useState<readonly TimeView[] | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    setTimes(null);
    if (begin === null || end === null || begin >= end) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      // the server returns times later than `after`
      const query = { after: toUtc(begin - 0.001), count: MOST };
      api
        .get<Paged<TimeView>>(`/schedules/${segment(id)}/preview`, query, { abort: abort.signal })
        .then((page) => {
          setTimes(page.rows.filter((each) => toMs(each.utc) < end));
          setWrong("");
        })
        .catch((error: unknown) => {
          if (!abort.signal.aborted) setWrong(asProblem(error).detail);
        });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [id, begin, end]);
  return { times, wrong };
}
