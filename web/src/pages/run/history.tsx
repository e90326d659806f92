// The events of the run, in order.
import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../../api/client";
import { asking } from "../../api/live";
import type { EventsView, EventView } from "../../api/types";
import { formatDuration } from "../../model/durations";
import { joinEnvelope } from "../../model/json-text";
import { isEnded } from "../../model/statuses";
import { formatTime, toMs } from "../../model/times";
import { prefs } from "../../state/prefs";
import type { RunStore } from "../../state/run-store";
import { Button } from "../../ui/button";
import { TextInput } from "../../ui/field";
import { VirtualRows } from "../../ui/virtual-rows";
import { select } from "./view";

const ROW_PX = 28;
const LIVE_S = 2;

export function History({ store }: { store: RunStore }) {
  const events = useEvents(store);
  const [text, setText] = useState("");
  const shown = useMemo(() => filtered(events, text), [events, text]);
  return (
    <section class="history" aria-label="History">
      <div class="timeline-tools">
        <span class="history-filter">
          <TextInput value={text} onText={setText} label="Filter the history" placeholder="Filter by event or step" />
        </span>
        <span class="dim">
          {shown.length === events.length ? `${events.length} events` : `${shown.length} of ${events.length} events`}
        </span>
        <Button onClick={() => void download(store.runId)}>Download JSONL</Button>
      </div>
      <div class="history-row history-head" aria-hidden="true">
        <span>seq</span>
        <span>time</span>
        <span>after</span>
        <span>event</span>
        <span>step</span>
      </div>
      <VirtualRows
        count={shown.length}
        rowHeight={ROW_PX}
        label="Events"
        render={(index) => <EventRow event={shown[index]} previous={shown[index - 1]} />}
      />
    </section>
  );
}

function EventRow({ event, previous }: { event: EventView | undefined; previous: EventView | undefined }) {
  if (event === undefined) return null;
  const at = toMs(event.at);
  const after = previous !== undefined ? at - toMs(previous.at) : 0;
  const step = event.step ?? null;
  return (
    <div class="history-row">
      <span class="num">{event.seq}</span>
      <time title={event.at} dateTime={event.at}>
        {formatTime(at, prefs.value.zone, "time")}
      </time>
      <span class="num dim">{after > 0 ? `+${formatDuration(after)}` : ""}</span>
      <span class={/failed|retrying|lost|timed_out|rejected/.test(event.kind) ? "is-failing" : ""}>
        {event.kind.replaceAll("_", " ")}
        {event.attempt != null && event.attempt > 1 ? <span class="dim">{` attempt ${event.attempt}`}</span> : null}
      </span>
      <span class="history-what">
        {step !== null ? (
          <button type="button" class="link" onClick={() => select(step, null)}>
            {step}
          </button>
        ) : null}
        {event.error != null ? <span class="is-failing">{` ${event.error.text.split("\n", 1)[0]}`}</span> : null}
      </span>
    </div>
  );
}

function filtered(events: readonly EventView[], text: string): readonly EventView[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return events;
  return events.filter((event) => {
    const kind = event.kind.replaceAll("_", " ");
    const about = `${event.kind} ${kind} ${event.step ?? ""} ${event.error?.text ?? ""}`.toLowerCase();
    return words.every((word) => about.includes(word));
  });
}

function useEvents(store: RunStore): readonly EventView[] {
  const [events, setEvents] = useState<readonly EventView[]>([]);
  const status = store.run.value?.status;
  const live = status !== undefined && !isEnded(status);
  useEffect(() => {
    let all: readonly EventView[] = [];
    let after = 0;
    const stopped = { is: false };
    const more = async () => {
      for (;;) {
        const page = await readPage(store.runId, after, false);
        if (stopped.is) return;
        const fresh = all.length === 0 ? page.events : page.events.filter((event) => event.seq > after);
        if (fresh.length === 0) return;
        all = [...all, ...fresh];
        after = page.after;
        setEvents(all);
      }
    };
    const stop = live ? asking(LIVE_S, more) : (void more().catch(() => undefined), () => undefined);
    return () => {
      stopped.is = true;
      stop();
    };
  }, [store.runId, live]);
  return events;
}

function readPage(runId: string, after: number, payloads: boolean): Promise<EventsView> {
  const query = { after: String(after), payloads: String(payloads) };
  return api.get<EventsView>(`/runs/${encodeURIComponent(runId)}/events`, query, { raw: ["output"] });
}

/** One event per line, with values as they are stored. */
async function download(runId: string): Promise<void> {
  const parts: string[] = [];
  let after = 0;
  for (;;) {
    const page = await readPage(runId, after, true);
    const fresh = parts.length === 0 ? page.events : page.events.filter((event) => event.seq > after);
    if (fresh.length === 0) break;
    for (const event of fresh) parts.push(`${joinEnvelope(event)}\n`);
    after = page.after;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  link.download = `${runId}.jsonl`;
  link.click();
  URL.revokeObjectURL(link.href);
}
