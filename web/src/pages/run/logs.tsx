// The last log lines of a step, in order.
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { LogLineView, Paged, StepLogView, StepView } from "../../api/types";
import { formatTime, toMs } from "../../model/times";
import { serverNow } from "../../state/clock";
import { prefs } from "../../state/prefs";
import { useResource } from "../../state/resource";
import { Copy } from "../../ui/copy";
import { ErrorBox } from "../../ui/error-box";
import { textOf } from "./values";

const LIVE_S = 2;
/** Log lines are sent separately, and may arrive after the end of their step. */
const LATE_MS = 15_000;

export function Logs({ runId, step }: { runId: string; step: StepView }) {
  const stepId = step.step_id;
  const ended = step.finished_at === null ? null : toMs(step.finished_at);
  const [live, setLive] = useState(true);
  useEffect(() => {
    if (ended === null) return setLive(true);
    const timer = setTimeout(() => setLive(false), Math.max(0, ended + LATE_MS - serverNow()));
    return () => clearTimeout(timer);
  }, [ended]);
  const logs = useResource(
    (abort) =>
      api.get<Paged<StepLogView>>(
        `/runs/${encodeURIComponent(runId)}/step/logs`,
        { id: stepId },
        { abort, raw: ["text"] },
      ),
    [runId, stepId],
    live ? { every: LIVE_S } : {},
  );
  if (logs.error !== null && logs.value === null) return <ErrorBox problem={logs.error} onRetry={logs.reload} />;
  if (logs.value === null) return null;
  const log = logs.value.rows[0];
  if (log === undefined || log.lines.length === 0) {
    return (
      <p class="dim">
        Nothing was logged. The last 200 lines that a step logs with Python's logging module appear here.
      </p>
    );
  }
  const zone = prefs.value.zone;
  const lines = log.lines.map(lineText);
  return (
    <div class="logs">
      <div class="value-tools">
        <span class="dim">
          {`${lines.length} ${lines.length === 1 ? "line" : "lines"}`}
          {log.dropped > 0 ? `, ${log.dropped} earlier lines were dropped` : ""}
        </span>
        <Copy text={lines.join("\n")} label="Copy logs" />
      </div>
      <ol class="log-lines">
        {log.lines.map((line, index) => (
          <li key={index} class={`log-${line.level.toLowerCase()}`}>
            <time title={line.at} dateTime={line.at}>
              {formatTime(toMs(line.at), zone, "time")}
            </time>
            <span class="log-level">{line.level.toLowerCase()}</span>
            <span class="log-text">{lines[index]}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function lineText(line: LogLineView): string {
  const text = textOf(line.text) ?? "";
  if (!text.startsWith('"')) return text;
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}
