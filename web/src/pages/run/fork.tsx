// Forks the run at a step, optionally with edited results. Lists which results are kept and which steps run again
// before it is done.
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ForkedView, StepView, TimelineStepView, WholeRunView } from "../../api/types";
import { diffLines } from "../../model/diff";
import { checkSyntax, pretty, RawJson } from "../../model/json-text";
import { notice } from "../../state/notices";
import { go } from "../../state/route";
import { RAW_FIELDS, type RunStore } from "../../state/run-store";
import { Diff } from "../../ui/diff";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, Select, TextInput } from "../../ui/field";
import { JsonEditor } from "../../ui/json-editor";
import { closeDialog, Touched } from "./dialogs";
import { runHref } from "./header";
import { isKept, keptBefore } from "./fork-plan";

const LISTED = 30;

export function ForkDialog(props: { store: RunStore; run: WholeRunView; step: string; edit: boolean }) {
  const { store, run, step, edit } = props;
  const steps = store.steps.value;
  const [original, setOriginal] = useState<string | null>(edit ? null : "");
  const [text, setText] = useState("");
  const [failure, setFailure] = useState("");
  const [from, setFrom] = useState(edit ? nextAfter(steps, step) : step);
  const [version, setVersion] = useState(run.version ?? "");
  const [workflowId, setWorkflowId] = useState("");
  useEffect(() => {
    if (!edit) return;
    const load = api.get<StepView>(`/runs/${encodeURIComponent(run.run_id)}/step`, { id: step }, { raw: RAW_FIELDS });
    load.then(
      (whole) => {
        const stored = whole.output instanceof RawJson ? whole.output.text : "null";
        setOriginal(stored);
        setText(stored);
      },
      (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)),
    );
  }, [run.run_id, step, edit]);
  const error = edit && original !== null ? checkSyntax(text) : null;
  const { kept, again } = keptBefore(steps, from);
  const confirm = async (key: string) => {
    const body = {
      from_step: from,
      outputs: edit && text !== original ? { [step]: new RawJson(text) } : {},
      version: version === run.version ? "" : version,
      workflow_id: workflowId,
    };
    const forked = await api.send<ForkedView>("POST", `/runs/${encodeURIComponent(run.run_id)}/fork`, body, {
      key,
    });
    notice("A new run was forked.", { kind: "ok", href: runHref(forked.run_id) });
    closeDialog();
    go(runHref(forked.run_id));
  };
  return (
    <ConfirmDialog
      title={edit ? "Edit the output and fork" : "Rerun from here, as a new run"}
      verb="Fork"
      onConfirm={confirm}
      onClose={closeDialog}
      disabled={error !== null || original === null}
      touches={
        <>
          <Touched run={run} />
          <p>This run is not changed. A new run starts with its results.</p>
        </>
      }
    >
      {failure !== "" ? <p class="field-error">{failure}</p> : null}
      {edit && original !== null ? (
        <>
          <Field label={`Output of ${step}`} {...(error !== null ? { error } : {})}>
            <JsonEditor text={text} onText={setText} />
          </Field>
          {text !== original && error === null ? <Diff lines={diffLines(lines(original), lines(text))} /> : null}
        </>
      ) : null}
      <Field label="Run again from">
        <Select value={from} onSelect={setFrom} options={choices(steps, edit ? step : null)} />
      </Field>
      <div class="fork-plan">
        <Plan title={`Kept: ${kept.length}`} steps={kept} edited={edit ? step : null} />
        <Plan title={`Runs again: ${again.length}`} steps={again} edited={null} />
      </div>
      <div class="fork-fields">
        <Field label="Version">
          <TextInput value={version} onText={setVersion} />
        </Field>
        <Field label="New workflow id" help="Leave empty to generate one.">
          <TextInput value={workflowId} onText={setWorkflowId} />
        </Field>
      </div>
    </ConfirmDialog>
  );
}

function Plan({ title, steps, edited }: { title: string; steps: readonly TimelineStepView[]; edited: string | null }) {
  return (
    <section>
      <h3>{title}</h3>
      <ul tabIndex={0} aria-label={title}>
        {steps.slice(0, LISTED).map((step) => (
          <li key={step.step_id}>
            <code>{step.step_id}</code> {step.step_id === edited ? <b>edited</b> : null}
          </li>
        ))}
        {steps.length > LISTED ? <li class="dim">{`and ${steps.length - LISTED} more`}</li> : null}
      </ul>
    </section>
  );
}

function lines(text: string): string {
  return checkSyntax(text) === null ? pretty(text) : text;
}

function choices(steps: readonly TimelineStepView[], after: string | null): { value: string; label: string }[] {
  const begin = after === null ? 0 : steps.findIndex((step) => step.step_id === after) + 1;
  const all = steps.slice(begin).map((step) => ({ value: step.step_id, label: step.step_id }));
  return [...all, { value: "", label: "nothing (keep all results)" }];
}

function nextAfter(steps: readonly TimelineStepView[], step: string): string {
  const edited = steps.find((each) => each.step_id === step);
  if (edited === undefined) return "";
  return steps.find((each) => each.step_id !== step && isKept(edited, each))?.step_id ?? "";
}
