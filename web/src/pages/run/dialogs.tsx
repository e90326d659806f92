// Confirmation dialogs of the actions on a run. Each says what it changes and acts once.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { StatusView, WholeRunView, WokenView } from "../../api/types";
import { notice } from "../../state/notices";
import type { RunStore } from "../../state/run-store";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, TextInput } from "../../ui/field";
import { ForkDialog } from "./fork";
import { SignalDialog } from "./signal-dialog";
import { StartAgainDialog } from "./start-again";

export type Ask =
  | { kind: "signal"; name: string }
  | { kind: "wake"; step: string }
  | { kind: "pause" }
  | { kind: "resume" }
  | { kind: "cancel" }
  | { kind: "terminate" }
  | { kind: "retry"; step: string }
  | { kind: "fork"; step: string; edit: boolean }
  | { kind: "again" };

const asked = signal<Ask | null>(null);

export function openDialog(ask: Ask): void {
  asked.value = ask;
}

export function closeDialog(): void {
  asked.value = null;
}

export function Dialogs({ store, run }: { store: RunStore; run: WholeRunView }) {
  const ask = asked.value;
  if (ask === null) return null;
  switch (ask.kind) {
    case "signal":
      return <SignalDialog store={store} run={run} name={ask.name} />;
    case "fork":
      return <ForkDialog store={store} run={run} step={ask.step} edit={ask.edit} />;
    case "again":
      return <StartAgainDialog run={run} />;
    case "wake":
      return <WakeDialog store={store} run={run} step={ask.step} />;
    case "retry":
      return <RetryDialog store={store} run={run} step={ask.step} />;
    default:
      return <VerbDialog store={store} run={run} verb={ask.kind} />;
  }
}

type Verb = "pause" | "resume" | "cancel" | "terminate";

const VERBS: Readonly<Record<Verb, { title: string; says: string; button: string; done: string }>> = {
  pause: {
    title: "Pause this run",
    says: "A step that is running finishes first. Nothing else starts until you resume. Timers and signals are kept.",
    button: "Pause",
    done: "Pause requested.",
  },
  resume: { title: "Resume this run", says: "The run continues where it stopped.", button: "Resume", done: "Resumed." },
  cancel: {
    title: "Cancel this run",
    says: "Its code can clean up, then the run ends as cancelled. So do its children, unless they may outlive it.",
    button: "Cancel the run",
    done: "Cancellation requested.",
  },
  terminate: {
    title: "Terminate this run",
    says: "The run ends immediately, without cleanup. Work that its steps started elsewhere is not undone.",
    button: "Terminate",
    done: "Terminated.",
  },
};

function VerbDialog({ store, run, verb }: { store: RunStore; run: WholeRunView; verb: Verb }) {
  const [reason, setReason] = useState("");
  const words = VERBS[verb];
  const confirm = async (key: string) => {
    const body = verb === "resume" ? {} : { reason };
    await api.send<StatusView>("POST", `/runs/${encodeURIComponent(run.run_id)}/${verb}`, body, { key });
    notice(words.done, { kind: "ok" });
    closeDialog();
    await store.refresh();
  };
  return (
    <ConfirmDialog
      title={words.title}
      verb={words.button}
      danger={verb === "cancel" || verb === "terminate"}
      onConfirm={confirm}
      onClose={closeDialog}
      touches={
        <>
          <Touched run={run} />
          <p>{words.says}</p>
        </>
      }
    >
      {verb === "resume" ? null : (
        <Field label="Reason" help="Optional. Shown with the run.">
          <TextInput value={reason} onText={setReason} />
        </Field>
      )}
    </ConfirmDialog>
  );
}

function WakeDialog({ store, run, step }: { store: RunStore; run: WholeRunView; step: string }) {
  const row = store.steps.value.find((each) => each.step_id === step);
  const what =
    row === undefined ? "The run's next attempt or start" : row.kind === "sleep" ? "The sleep" : "The next attempt of";
  const confirm = async (key: string) => {
    const query = step === "" ? {} : { id: step };
    const woken = await api.send<WokenView>(
      "POST",
      `/runs/${encodeURIComponent(run.run_id)}/step/wake`,
      {},
      { key, query },
    );
    notice(woken.woken ? "It is due now." : "It was no longer waiting.", { kind: "ok" });
    closeDialog();
    await store.refresh();
  };
  return (
    <ConfirmDialog
      title={row?.kind === "sleep" ? "Wake now" : "Retry now"}
      verb={row?.kind === "sleep" ? "Wake" : "Retry now"}
      onConfirm={confirm}
      onClose={closeDialog}
      touches={
        <>
          <Touched run={run} />
          <p>
            {what} {step !== "" ? <code>{step}</code> : null} is due now instead of at its scheduled time. The history
            records this.
          </p>
        </>
      }
    />
  );
}

function RetryDialog({ store, run, step }: { store: RunStore; run: WholeRunView; step: string }) {
  const confirm = async (key: string) => {
    const body = step === "" ? {} : { from_step: step };
    await api.send<StatusView>("POST", `/runs/${encodeURIComponent(run.run_id)}/retry`, body, { key });
    notice("The run continues.", { kind: "ok" });
    closeDialog();
    await store.reload();
  };
  return (
    <ConfirmDialog
      title={step === "" ? "Rerun from the failure" : "Rerun from this step"}
      verb="Rerun"
      onConfirm={confirm}
      onClose={closeDialog}
      touches={
        <>
          <Touched run={run} />
          <p>
            The same run continues from {step === "" ? "the step that failed" : <code>{step}</code>}. Earlier results
            are kept. Later ones are discarded, and their steps run again.
          </p>
        </>
      }
    />
  );
}

export function Touched({ run }: { run: WholeRunView }) {
  return (
    <p class="touched">
      <b>{run.workflow}</b> <code>{run.workflow_id}</code> <code class="dim">{run.run_id}</code>
    </p>
  );
}
