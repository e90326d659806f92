import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { RunView } from "../../api/types";
import { isEnded } from "../../model/statuses";
import { notice } from "../../state/notices";
import { href } from "../../state/route";
import { copyText } from "../../ui/copy";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, TextInput } from "../../ui/field";
import type { MenuItem } from "../../ui/menu";

export type RunVerb = "cancel" | "terminate" | "pause" | "resume" | "retry";

/** A pending confirmation. */
export interface Ask {
  readonly verb: RunVerb;
  readonly run: RunView;
}

interface VerbWords {
  readonly label: string;
  readonly title: string;
  readonly touches: string;
  readonly danger: boolean;
  readonly done: string;
  readonly takesReason: boolean;
}

const VERBS: Readonly<Record<RunVerb, VerbWords>> = {
  cancel: {
    label: "Cancel…",
    title: "Cancel the run",
    touches: "The run is asked to stop. Its code can clean up, and its children are cancelled too. This cannot be undone.",
    danger: true,
    done: "Cancellation requested",
    takesReason: true,
  },
  terminate: {
    label: "Terminate…",
    title: "Terminate the run",
    touches: "The run ends immediately, without cleanup. What its steps started is not undone. This cannot be undone.",
    danger: true,
    done: "Terminated",
    takesReason: true,
  },
  pause: {
    label: "Pause…",
    title: "Pause the run",
    touches: "A step that is running finishes first. Nothing else starts until you resume the run.",
    danger: false,
    done: "Paused",
    takesReason: true,
  },
  resume: {
    label: "Resume…",
    title: "Resume the run",
    touches: "The run continues where it was paused.",
    danger: false,
    done: "Resumed",
    takesReason: false,
  },
  retry: {
    label: "Retry…",
    title: "Retry the run",
    touches: "The run continues from the step that failed. Earlier results are kept.",
    danger: false,
    done: "Retrying",
    takesReason: false,
  },
};

function verbsOf(run: RunView): RunVerb[] {
  if (run.status === "failed") return ["retry"];
  if (isEnded(run.status)) return [];
  return [run.status === "paused" || run.pause_requested ? "resume" : "pause", "cancel", "terminate"];
}

export function itemsOf(run: RunView, mayAct: boolean, onAsk: (ask: Ask) => void): MenuItem[] {
  const items: MenuItem[] = [
    { label: "Open", href: href(`/runs/${run.run_id}`), local: true },
    { label: "Copy run id", icon: "copy", local: true, onSelect: () => void copyText(run.run_id) },
    {
      label: "Copy link",
      icon: "copy",
      local: true,
      onSelect: () => void copyText(new URL(href(`/runs/${run.run_id}`), location.href).href),
    },
  ];
  if (!mayAct) return items;
  for (const verb of verbsOf(run)) {
    items.push({ label: VERBS[verb].label, danger: VERBS[verb].danger, onSelect: () => onAsk({ verb, run }) });
  }
  return items;
}

/** Asks for confirmation before one run is changed. */
export function RunDialog({ ask, onClose }: { readonly ask: Ask; readonly onClose: () => void }) {
  const { verb, run } = ask;
  const words = VERBS[verb];
  const [reason, setReason] = useState("");
  const act = async (key: string): Promise<void> => {
    const body = words.takesReason && reason !== "" ? { reason } : {};
    await api.send("POST", `/runs/${run.run_id}/${verb}`, body, { key });
    notice(`${words.done}: ${run.workflow_id}`, { href: href(`/runs/${run.run_id}`) });
    onClose();
  };
  return (
    <ConfirmDialog
      title={words.title}
      verb={words.label.replace("…", "")}
      danger={words.danger}
      onConfirm={act}
      onClose={onClose}
      touches={
        <>
          <p>
            <strong>{run.workflow}</strong> <span class="mono">{run.workflow_id}</span>
          </p>
          <p class="dim mono">{run.run_id}</p>
          <p>{words.touches}</p>
        </>
      }
    >
      {words.takesReason && (
        <Field label="Reason" help="Stored with the run.">
          <TextInput value={reason} onText={setReason} />
        </Field>
      )}
    </ConfirmDialog>
  );
}
