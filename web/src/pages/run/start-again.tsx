// Starts the same workflow as a new run, with the same or an edited input.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { StartedView, WholeRunView } from "../../api/types";
import { diffLines } from "../../model/diff";
import { checkSyntax, pretty, RawJson } from "../../model/json-text";
import { notice } from "../../state/notices";
import { go, href, segment } from "../../state/route";
import { A } from "../../ui/a";
import { Diff } from "../../ui/diff";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, TextInput } from "../../ui/field";
import { JsonEditor } from "../../ui/json-editor";
import { closeDialog, Touched } from "./dialogs";
import { runHref } from "./header";

export function StartAgainDialog({ run }: { run: WholeRunView }) {
  const original = run.input instanceof RawJson ? run.input.text : "null";
  const [text, setText] = useState(() => pretty(original));
  const [workflowId, setWorkflowId] = useState("");
  const error = checkSyntax(text);
  const confirm = async (key: string) => {
    const body = {
      workflow: run.workflow,
      input: new RawJson(text),
      workflow_id: workflowId,
      labels: run.labels,
      priority: run.priority,
      ...(run.version !== null ? { version: run.version } : {}),
      ...(run.concurrency_key !== null ? { concurrency_key: run.concurrency_key } : {}),
    };
    const started = await api.send<StartedView>("POST", "/runs", body, { key });
    notice(started.warning ?? "A new run was started.", { kind: "ok", href: runHref(started.run_id) });
    closeDialog();
    go(runHref(started.run_id));
  };
  return (
    <ConfirmDialog
      title="Run again from the start"
      verb="Start a new run"
      onConfirm={confirm}
      onClose={closeDialog}
      disabled={error !== null}
      touches={
        <>
          <Touched run={run} />
          <p>This run is not changed. A new run starts from the beginning with this input.</p>
        </>
      }
    >
      <Field label="Input (JSON)" {...(error !== null ? { error } : {})}>
        <JsonEditor text={text} onText={setText} />
      </Field>
      {error === null && pretty(text) !== pretty(original) ? <Diff lines={diffLines(pretty(original), pretty(text))} /> : null}
      <p>
        <A href={href(`/workflows/${segment(run.workflow)}/start`, { from: run.run_id })}>Edit it in a form</A>
      </p>
      <Field label="New workflow id" help="Leave empty to generate one.">
        <TextInput value={workflowId} onText={setWorkflowId} />
      </Field>
    </ConfirmDialog>
  );
}
