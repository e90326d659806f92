import type { WorkflowTypeView } from "../../api/types";
import { parseDuration } from "../../model/durations";
import { setQuery } from "../../state/route";
import { Button } from "../../ui/button";
import { Field, type Option, Select, TextInput } from "../../ui/field";
import type { Options } from "./draft";

const CONFLICTS = [
  { value: "existing", label: "Return that run" },
  { value: "existing_or_completed", label: "Return that run, even if completed" },
  { value: "fail", label: "Refuse" },
  { value: "replace", label: "Terminate that run and start a new one" },
];

interface OptionFieldsProps {
  readonly options: Options;
  readonly version: string;
  readonly type: WorkflowTypeView;
  readonly onOptions: (change: (was: Options) => Options) => void;
}

export function OptionFields({ options, version, type, onOptions }: OptionFieldsProps) {
  const set = (patch: Partial<Options>): void => onOptions((was) => ({ ...was, ...patch }));
  const { delay, priority } = options;
  const badDelay = delay.trim() !== "" && parseDuration(delay) === null;
  const badPriority = priority.trim() !== "" && !/^-?\d{1,3}$/.test(priority.trim());
  return (
    <details class="card">
      <summary>ID, labels, delay, version, priority</summary>
      <div class="stack start-options">
        <Field label="Workflow id" help="Unique among open runs. Leave empty to generate one.">
          <TextInput value={options.workflowId} onText={(workflowId) => set({ workflowId })} mono />
        </Field>
        <Field label="If an open run has this id">
          <Select value={options.onConflict} options={CONFLICTS} onSelect={(onConflict) => set({ onConflict })} />
        </Field>
        <Labels labels={options.labels} onLabels={(labels) => set({ labels })} />
        <Field
          label="Delay"
          help="How long to wait before the start, such as 90s or 2h 30m."
          error={badDelay ? "must be a duration with its unit, such as 90s" : null}
        >
          <TextInput value={delay} onText={(text) => set({ delay: text })} mono />
        </Field>
        <Field label="Version">
          <Select
            value={version}
            options={versionsOf(type, version)}
            onSelect={(chosen) => setQuery({ version: chosen || null }, { replace: true })}
          />
        </Field>
        <Field
          label="Priority"
          help="-100 to 100. Higher priorities start first."
          error={badPriority ? "must be a whole number from -100 to 100" : null}
        >
          <TextInput value={priority} onText={(text) => set({ priority: text })} mono />
        </Field>
        <Field label="Concurrency key" help="Per-key limits count runs with the same key.">
          <TextInput value={options.concurrencyKey} onText={(concurrencyKey) => set({ concurrencyKey })} mono />
        </Field>
      </div>
    </details>
  );
}

/** Includes an unknown version in the address: the server reports the error. */
function versionsOf({ versions, default_version: fallback }: WorkflowTypeView, version: string): Option[] {
  const named = version === "" || versions.includes(version) ? versions : [version, ...versions];
  const first = { value: "", label: fallback === null ? "Default" : `Default, ${fallback}` };
  return [first, ...named.map((each) => ({ value: each, label: each }))];
}

interface LabelsProps {
  readonly labels: Options["labels"];
  readonly onLabels: (labels: Options["labels"]) => void;
}

function Labels({ labels, onLabels }: LabelsProps) {
  const change = (index: number, with_: readonly (readonly [string, string])[]): void =>
    onLabels(labels.flatMap((each, at) => (at === index ? with_ : [each])));
  return (
    <fieldset class="schema-group">
      <legend>Labels</legend>
      {labels.map(([key, value], index) => (
        <div key={index} class="row schema-line">
          <TextInput label="Label" placeholder="key" value={key} onText={(to) => change(index, [[to, value]])} mono />
          <TextInput label="Value" placeholder="value" value={value} onText={(to) => change(index, [[key, to]])} mono />
          <Button kind="quiet" icon="trash" label={`Remove label ${key}`} onClick={() => change(index, [])} />
        </div>
      ))}
      <Button local icon="plus" label="Add a label" onClick={() => onLabels([...labels, ["", ""]])}>
        Add
      </Button>
    </fieldset>
  );
}
