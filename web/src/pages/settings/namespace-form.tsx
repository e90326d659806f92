import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { NamespaceView } from "../../api/types";
import { formatDuration, parseDuration } from "../../model/durations";
import { notice } from "../../state/notices";
import { segment } from "../../state/route";
import { ConfirmDialog } from "../../ui/dialog";
import { Checkbox, Field, TextInput } from "../../ui/field";

type LimitField =
  | "max_open_runs"
  | "max_running_runs"
  | "max_starts_per_second"
  | "max_stored_bytes"
  | "max_sessions"
  | "max_schedules";

export const LIMITS: readonly { readonly field: LimitField; readonly label: string }[] = [
  { field: "max_open_runs", label: "Open runs" },
  { field: "max_running_runs", label: "Running runs" },
  { field: "max_starts_per_second", label: "Starts per second" },
  { field: "max_stored_bytes", label: "Stored bytes" },
  { field: "max_sessions", label: "Worker sessions" },
  { field: "max_schedules", label: "Schedules" },
];

const STATUSES = ["completed", "failed", "cancelled"] as const;

interface FormProps {
  /** Null: a new namespace. */
  readonly was: NamespaceView | null;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function NamespaceForm({ was, onClose, onDone }: FormProps) {
  const [name, setName] = useState(was?.namespace ?? "");
  const [enabled, setEnabled] = useState(was?.enabled ?? true);
  const [limits, setLimits] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(
      LIMITS.map(({ field }) => [field, was?.[field] === null || was === null ? "" : String(was[field])]),
    ),
  );
  const [kept, setKept] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(STATUSES.map((status) => [status, durationText(was?.retention_seconds[status])])),
  );
  const wrongLimit = (field: string): boolean => (limits[field] ?? "") !== "" && !(Number(limits[field]) >= 0);
  const wrongKept = (status: string): boolean =>
    (kept[status] ?? "") !== "" && parseDuration(kept[status] ?? "") === null;
  const wrong = LIMITS.some(({ field }) => wrongLimit(field)) || STATUSES.some(wrongKept) || name.trim() === "";
  const save = async (key: string): Promise<void> => {
    const body = {
      ...Object.fromEntries(LIMITS.map(({ field }) => [field, limits[field] ? Number(limits[field]) : null])),
      retention_seconds: Object.fromEntries(
        STATUSES.filter((status) => kept[status]).map((status) => [
          status,
          Math.round((parseDuration(kept[status] ?? "") ?? 0) / 1000),
        ]),
      ),
    };
    if (was === null) await api.send("POST", "/namespaces", { namespace: name.trim(), ...body }, { key });
    else await api.send("PATCH", `/namespaces/${segment(was.namespace)}`, { ...body, enabled }, { key });
    notice(`Saved ${name.trim()}`);
    onClose();
    onDone();
  };
  return (
    <ConfirmDialog
      title={was === null ? "New namespace" : `Edit ${was.namespace}`}
      verb={was === null ? "Create" : "Save"}
      onConfirm={save}
      onClose={onClose}
      disabled={wrong}
      touches="Leave a limit empty for no limit. Limits apply to new work only: what exists is kept."
    >
      {was === null ? (
        <Field label="Name" required>
          <TextInput value={name} onText={setName} mono required />
        </Field>
      ) : (
        <Checkbox checked={enabled} onCheck={setEnabled}>
          Accept new runs
        </Checkbox>
      )}
      <fieldset class="fields">
        <legend>Limits</legend>
        {LIMITS.map(({ field, label }) => (
          <Field key={field} label={label} error={wrongLimit(field) ? "Enter a number, or leave empty." : null}>
            <TextInput
              value={limits[field] ?? ""}
              onText={(text) => setLimits({ ...limits, [field]: text.trim() })}
              placeholder="none"
            />
          </Field>
        ))}
      </fieldset>
      <fieldset class="fields">
        <legend>Keep ended runs for</legend>
        {STATUSES.map((status) => (
          <Field key={status} label={status} error={wrongKept(status) ? "Enter a duration, such as 7d." : null}>
            <TextInput
              value={kept[status] ?? ""}
              onText={(text) => setKept({ ...kept, [status]: text })}
              placeholder="server default"
            />
          </Field>
        ))}
      </fieldset>
    </ConfirmDialog>
  );
}

function durationText(seconds: number | undefined): string {
  if (seconds === undefined) return "";
  // a duration that needs more than two units is kept as seconds
  return parseDuration(formatDuration(seconds * 1000)) === seconds * 1000
    ? formatDuration(seconds * 1000)
    : `${seconds}s`;
}

export function DeleteNamespaceDialog({ was, onClose, onDone }: FormProps & { readonly was: NamespaceView }) {
  const act = async (key: string): Promise<void> => {
    await api.send("DELETE", `/namespaces/${segment(was.namespace)}`, {}, { key, query: { confirm: was.namespace } });
    notice(`${was.namespace} is being deleted`);
    onClose();
    onDone();
  };
  return (
    <ConfirmDialog
      title={`Delete ${was.namespace}?`}
      verb="Delete namespace"
      danger
      typed={was.namespace}
      onConfirm={act}
      onClose={onClose}
      touches={
        <p>
          All runs of <strong>{was.namespace}</strong>, including open ones, and its schedules, workflow types and keys
          are deleted permanently.
        </p>
      }
    />
  );
}
