// Sends a signal to the run, with its value to the byte.
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { SignalledView, WholeRunView } from "../../api/types";
import { checkSyntax, RawJson } from "../../model/json-text";
import { notice } from "../../state/notices";
import type { RunStore } from "../../state/run-store";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, TextInput } from "../../ui/field";
import { JsonEditor } from "../../ui/json-editor";
import { closeDialog, Touched } from "./dialogs";

export function SignalDialog({ store, run, name: first }: { store: RunStore; run: WholeRunView; name: string }) {
  const waiting = [
    ...new Set(
      store.steps.value.filter((step) => step.kind === "signal" && step.status === "running").map((step) => step.name),
    ),
  ];
  const [name, setName] = useState(first !== "" ? first : (waiting[0] ?? ""));
  const [text, setText] = useState("null");
  const error = checkSyntax(text);
  const confirm = async (key: string) => {
    if (error !== null) throw new Error(`The value is not JSON: ${error}`);
    const body = { name, payload: new RawJson(text) };
    const sent = await api.send<SignalledView>("POST", `/runs/${encodeURIComponent(run.run_id)}/signal`, body, {
      key,
    });
    notice(sent.delivered ? "Delivered to a waiting step." : "Stored until a step waits for it.", { kind: "ok" });
    closeDialog();
    await store.refresh();
  };
  return (
    <ConfirmDialog
      title="Send a signal"
      verb="Send"
      onConfirm={confirm}
      onClose={closeDialog}
      disabled={name === "" || error !== null}
      touches={<Touched run={run} />}
    >
      <Field
        label="Signal"
        help={waiting.length > 0 ? `Waiting for ${waiting.join(", ")}.` : "No step is waiting for a signal."}
      >
        <TextInput value={name} onText={setName} />
      </Field>
      <Field label="Value (JSON)" {...(error !== null ? { error } : {})}>
        <JsonEditor text={text} onText={setText} />
      </Field>
    </ConfirmDialog>
  );
}
