import { useEffect, useState } from "preact/hooks";
import { api, asProblem } from "../../api/client";
import type { Paged, TimeView } from "../../api/types";
import { toMs, zoneName } from "../../model/times";
import { secondNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { Time, Until } from "../../ui/time";
import type { Draft } from "./form";
import { clockNote } from "./parts";

const SHOWN = 5;
const PAUSE_MS = 300;
const DAY_MS = 86_400_000;

/** Future times: in the schedule's time zone, and in the viewer's. */
export function Times({ times, cron }: { readonly times: readonly TimeView[]; readonly cron: string | null }) {
  const note = clockNote(times, cron);
  return (
    <>
      <ol class="times">
        {times.map((each) => (
          <TimeLine key={each.utc} time={each} own={cron !== null} />
        ))}
      </ol>
      {note !== "" && <p class="clock-note">{note}</p>}
    </>
  );
}

/** `own`: the schedule has a time zone of its own. The viewer's time is omitted if both zones are equal. */
export function TimeLine({ time, own }: { readonly time: TimeView; readonly own: boolean }) {
  const ms = toMs(time.utc);
  const left = ms - secondNow.value;
  const soon = left > 0 && left < DAY_MS;
  const other = !own || zoneName(ms, prefs.value.zone) !== time.zone;
  return (
    <li>
      {own && (
        <span class="mono nowrap">
          {time.local} {time.zone}
        </span>
      )}{" "}
      <span class={own ? "dim" : ""}>
        {other && <Time ms={ms} />} {soon && <Until ms={ms} />}
      </span>
    </li>
  );
}

/** The preview of an expression that is being typed. */
export function UnsavedPreview({ draft }: { readonly draft: Draft }) {
  const [times, setTimes] = useState<readonly TimeView[]>([]);
  const [wrong, setWrong] = useState("");
  const { kind, cron, timezone, every } = draft;
  useEffect(() => {
    const abort = new AbortController();
    const body = kind === "cron" ? { cron, timezone: timezone.trim() || null } : { every };
    const timer = setTimeout(() => {
      api
        .send<Paged<TimeView>>("POST", "/schedules/preview", { ...body, count: SHOWN }, { abort: abort.signal })
        .then((page) => {
          setTimes(page.rows);
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
  }, [kind, cron, timezone, every]);
  return (
    <div class="card" role="group" aria-label="Next times">
      {wrong !== "" ? <p class="field-error">{wrong}</p> : <Times times={times} cron={kind === "cron" ? cron : null} />}
    </div>
  );
}
