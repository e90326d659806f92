// Why the run is in its current state, in a sentence, with the remedy as a button.
import type { ComponentChildren } from "preact";
import type { ExplanationView, WholeRunView } from "../../api/types";
import { formatDuration } from "../../model/durations";
import { timesIn, toMs } from "../../model/times";
import { now } from "../../state/clock";
import { can } from "../../state/session";
import type { RunStore } from "../../state/run-store";
import { Button, LinkButton } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { Time } from "../../ui/time";
import { openDialog } from "./dialogs";
import { fileName, ownFrame } from "./frames";
import { runHref } from "./header";

const SILENT = new Set(["running", "completed", "about_to_be_taken"]);
const NOT_CHIPS = new Set(["run_id", "status", "status_text", "not_retried", "waits"]);
const TIMES = new Set(["retry_at", "wakes_at", "times_out_at", "started_at", "deadline_at", "wake_at"]);
const KIND: Readonly<Record<string, string>> = {
  failed: "failed",
  timed_out: "failed",
  quarantined: "failed",
  diverged: "failed",
  signal_does_not_fit: "failed",
  waiting_for_retry: "retrying",
  waiting_for_run_retry: "retrying",
  waiting_for_signal: "waiting",
  waiting_for_child: "waiting",
  waiting_for_run: "waiting",
  sleeping: "sleeping",
  delayed_start: "sleeping",
  paused: "paused",
  pause_requested: "paused",
  cancelled: "cancelled",
  terminated: "cancelled",
  cancel_requested: "cancelled",
};

export function Why({ store }: { store: RunStore }) {
  const why = store.explanation.value;
  const run = store.run.value;
  if (why === null || run === null || SILENT.has(why.reason)) return null;
  const kind = KIND[why.reason] ?? "pending";
  const failed = run.status === "failed" && run.error !== null;
  return (
    <section class="why" data-state={kind} aria-label="Why the run is in this state">
      <div class="why-text">
        {failed ? <Failure run={run} /> : null}
        <p class={failed ? "dim" : ""}>
          <Sentence text={failed ? withoutError(why.sentence, run) : why.sentence} />
        </p>
        <p class="why-facts">{chipsOf(why)}</p>
      </div>
      <Remedy why={why} run={run} />
    </section>
  );
}

/** The error stands above it, and need not be said again. */
function withoutError(sentence: string, run: WholeRunView): string {
  const error = run.error?.text.split(/\s+/).join(" ").replace(/\.+$/, "") ?? "";
  return error === "" ? sentence : sentence.replace(`: ${error}`, "");
}

/** The server's text, with its times in the selected time zone. */
function Sentence({ text }: { text: string }) {
  return <>{timesIn(text).map((part, index) => (typeof part === "string" ? part : <Time key={index} ms={part} />))}</>;
}

function Failure({ run }: { run: WholeRunView }) {
  const frame = ownFrame(run.error?.traceback ?? null);
  return (
    <>
      <p class="why-error">
        <Icon name="cross" /> {run.error?.text}
      </p>
      {frame !== null ? (
        <p class="why-frame" title={frame.file}>
          <code>{`${fileName(frame.file)}:${frame.line}`}</code>
          {frame.name !== "" ? <span class="dim">{` in ${frame.name}`}</span> : null}
          {frame.code !== "" ? <code class="why-code">{frame.code.split("\n", 1)[0]}</code> : null}
        </p>
      ) : null}
    </>
  );
}

function chipsOf(why: ExplanationView): ComponentChildren[] {
  return Object.entries(why.facts)
    .filter(([name, value]) => !NOT_CHIPS.has(name) && value !== "")
    .map(([name, value]) => (
      <Chip key={name}>
        <span class="dim">{name.replaceAll("_", " ")}</span> {TIMES.has(name) ? <Countdown at={value} /> : value}
      </Chip>
    ));
}

/** Counts down to the stored time, so that it shows the same after a reload and in other browsers. */
export function Countdown({ at }: { at: string }) {
  const ms = toMs(at);
  if (Number.isNaN(ms)) return <>{at}</>;
  const left = ms - now.value;
  return (
    <>
      <Time ms={ms} style="time" />
      {left > 0 ? (
        <b
          class="countdown num"
          data-until={at}
        >{` in ${formatDuration(Math.ceil(left / 1000) * 1000)}`}</b>
      ) : null}
    </>
  );
}

function Remedy({ why, run }: { why: ExplanationView; run: WholeRunView }) {
  const action = can("client") ? buttonOf(why, run) : null;
  const command = action === null ? commandOf(why.remedy) : null;
  if (action === null && command === null && why.remedy === null) return null;
  return (
    <div class="why-remedy">
      {action}
      {action === null && why.remedy !== null ? <p class="dim"><Sentence text={why.remedy} /></p> : null}
      {command !== null ? <Copy text={command} label="Copy command" /> : null}
    </div>
  );
}

function buttonOf(why: ExplanationView, run: WholeRunView): ComponentChildren {
  const step = why.facts["step"] ?? "";
  switch (why.reason) {
    case "waiting_for_signal":
      return (
        <Button kind="primary" onClick={() => openDialog({ kind: "signal", name: why.facts["signal"] ?? "" })}>
          Send the signal…
        </Button>
      );
    case "waiting_for_retry":
      return (
        <Button kind="primary" onClick={() => openDialog({ kind: "wake", step })}>
          Retry now…
        </Button>
      );
    case "waiting_for_run_retry":
      return (
        <Button kind="primary" onClick={() => openDialog({ kind: "wake", step: "" })}>
          Retry now…
        </Button>
      );
    case "delayed_start":
      return (
        <Button kind="primary" onClick={() => openDialog({ kind: "wake", step: "" })}>
          Start now…
        </Button>
      );
    case "sleeping":
      return <Button onClick={() => openDialog({ kind: "wake", step })}>Wake now…</Button>;
    case "waiting_for_child":
      return <LinkButton href={runHref(why.facts["child_run_id"] ?? "")}>Open the child</LinkButton>;
    case "waiting_for_run":
      return <LinkButton href={runHref(why.facts["blocked_by"] ?? "")}>Open that run</LinkButton>;
    case "continued":
      return <LinkButton href={runHref(why.facts["continued_as"] ?? run.run_id)}>Open the next run</LinkButton>;
    case "paused":
    case "quarantined":
    case "diverged":
      return (
        <Button kind="primary" onClick={() => openDialog({ kind: "resume" })}>
          Resume…
        </Button>
      );
    case "cancel_requested":
      return (
        <Button kind="danger" onClick={() => openDialog({ kind: "terminate" })}>
          Terminate…
        </Button>
      );
    case "failed":
    case "timed_out":
      return (
        <Button kind="primary" onClick={() => openDialog({ kind: "retry", step: "" })}>
          Rerun from the failure…
        </Button>
      );
    default:
      return null;
  }
}

/** The command at the end of a remedy. */
function commandOf(remedy: string | null): string | null {
  return /(kagzi [a-z][^\n]*)$/.exec(remedy ?? "")?.[1] ?? null;
}
