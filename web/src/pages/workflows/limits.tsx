import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ChangedWorkflowType, WorkflowTypeView } from "../../api/types";
import { notice } from "../../state/notices";
import { segment } from "../../state/route";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, Select, TextInput } from "../../ui/field";

type LimitName = "max_running" | "max_running_per_key" | "starts_per_second" | "starts_per_second_per_key";
type WhenFull = WorkflowTypeView["when_full"];

const LIMITS: readonly (readonly [LimitName, string])[] = [
  ["max_running", "Concurrent runs"],
  ["max_running_per_key", "Concurrent runs per key"],
  ["starts_per_second", "Starts per second"],
  ["starts_per_second_per_key", "Starts per second and key"],
];

const WHEN_FULL: readonly { readonly value: WhenFull; readonly label: string }[] = [
  { value: "queue", label: "wait in the queue" },
  { value: "reject", label: "are rejected" },
  { value: "cancel-oldest", label: "replace the oldest" },
];

export function limitRows(type: WorkflowTypeView): [string, string][] {
  const full = WHEN_FULL.find((each) => each.value === type.when_full)?.label ?? type.when_full;
  const words = (limit: number | null): string => (limit === null ? "no limit" : `at most ${limit}`);
  return [
    ...LIMITS.map(([name, label]): [string, string] => [label, words(type[name])]),
    ["Runs over a limit", full],
  ];
}

interface LimitsDialogProps {
  readonly type: WorkflowTypeView;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

export function LimitsDialog({ type, onClose, onChanged }: LimitsDialogProps) {
  const [draft, setDraft] = useState(() => draftOf(type));
  const [full, setFull] = useState(type.when_full);
  const wrong = LIMITS.filter(([name]) => limitOf(draft[name]) === undefined);
  const save = async (key: string): Promise<void> => {
    const before = draftOf(type);
    const changes: Record<string, unknown> = {};
    for (const [name] of LIMITS) if (draft[name] !== before[name]) changes[name] = limitOf(draft[name]) ?? null;
    if (full !== type.when_full) changes["when_full"] = full;
    if (Object.keys(changes).length === 0) return onClose();
    const path = `/workflows/${segment(type.workflow)}`;
    const changed = await api.send<ChangedWorkflowType>("PATCH", path, changes, { key });
    onClose();
    notice(changed.warning ?? `Changed the limits of ${type.workflow}`);
    onChanged();
  };
  return (
    <ConfirmDialog
      title={`Limits of ${type.workflow}`}
      verb="Save"
      onConfirm={save}
      onClose={onClose}
      disabled={wrong.length > 0}
      touches="The limits apply to runs that start from now on, on all workers. Running runs continue."
    >
      {LIMITS.map(([name, label]) => (
        <Field
          key={name}
          label={label}
          help="Leave empty for no limit."
          error={limitOf(draft[name]) === undefined ? "must be a number above zero" : null}
        >
          <TextInput mono value={draft[name]} onText={(text) => setDraft((was) => ({ ...was, [name]: text }))} />
        </Field>
      ))}
      <Field label="Runs over a limit">
        <Select
          value={full}
          options={WHEN_FULL}
          onSelect={(value) => setFull(WHEN_FULL.find((each) => each.value === value)?.value ?? "queue")}
        />
      </Field>
    </ConfirmDialog>
  );
}

function draftOf(type: WorkflowTypeView): Record<LimitName, string> {
  const text = (limit: number | null): string => (limit === null ? "" : String(limit));
  return {
    max_running: text(type.max_running),
    max_running_per_key: text(type.max_running_per_key),
    starts_per_second: text(type.starts_per_second),
    starts_per_second_per_key: text(type.starts_per_second_per_key),
  };
}

/** Null: no limit. Undefined: invalid. */
function limitOf(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const limit = Number(text);
  return Number.isFinite(limit) && limit > 0 ? limit : undefined;
}
