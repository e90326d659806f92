import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { SavedSchedule, ScheduleView } from "../../api/types";
import { checkSyntax, pretty, RawJson } from "../../model/json-text";
import { notice } from "../../state/notices";
import { href, segment } from "../../state/route";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, Select, TextInput } from "../../ui/field";
import { JsonEditor } from "../../ui/json-editor";
import { cronWords } from "./cron-words";
import { UnsavedPreview } from "./preview";

export interface Draft {
  readonly id: string;
  readonly workflow: string;
  readonly kind: "cron" | "every";
  readonly cron: string;
  readonly timezone: string;
  readonly every: string;
  readonly overlap: ScheduleView["overlap"];
  readonly input: string;
}

const OVERLAPS: readonly { readonly value: ScheduleView["overlap"]; readonly label: string }[] = [
  { value: "allow", label: "Start another one in parallel" },
  { value: "skip", label: "Skip this time" },
  { value: "buffer_one", label: "Start one after it ends" },
  { value: "cancel_other", label: "Cancel it and start the new one" },
];

interface ScheduleFormProps {
  /** Null: a new schedule. */
  readonly was: ScheduleView | null;
  readonly workflow: string;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}

/** Creates or changes a schedule. Previews its times before it is saved. */
export function ScheduleForm({ was, workflow, onClose, onSaved }: ScheduleFormProps) {
  const [draft, setDraft] = useState(() => draftOf(was, workflow));
  const set = (patch: Partial<Draft>): void => setDraft((before) => ({ ...before, ...patch }));
  const save = async (key: string): Promise<void> => {
    const path = was === null ? "/schedules" : `/schedules/${segment(was.schedule)}`;
    const saved = await api.send<SavedSchedule>(was === null ? "POST" : "PATCH", path, bodyOf(draft, was), {
      key,
      raw: ["input", "context"],
    });
    onClose();
    notice(saved.warning ?? `Saved ${saved.schedule}`, { href: href(`/schedules/${segment(saved.schedule)}`) });
    onSaved(saved.schedule);
  };
  const wrong = draft.input.trim() !== "" && checkSyntax(draft.input) !== null;
  return (
    <ConfirmDialog
      title={was === null ? "New schedule" : `Edit ${was.schedule}`}
      verb={was === null ? "Create" : "Save"}
      onConfirm={save}
      onClose={onClose}
      disabled={wrong || draft.workflow.trim() === ""}
      touches={
        was === null
          ? "The schedule starts runs from its next time on."
          : "Its times are recalculated from now on. Runs already started are not changed."
      }
    >
      {was === null && (
        <Field label="ID" help="Leave empty to generate one.">
          <TextInput value={draft.id} onText={(id) => set({ id })} mono />
        </Field>
      )}
      <Field label="Workflow" required>
        <TextInput value={draft.workflow} onText={(type) => set({ workflow: type })} mono required />
      </Field>
      <Field label="Repeats by">
        <Select
          value={draft.kind}
          options={[
            { value: "cron", label: "Cron expression" },
            { value: "every", label: "Interval" },
          ]}
          onSelect={(kind) => set({ kind: kind === "every" ? "every" : "cron" })}
        />
      </Field>
      {draft.kind === "cron" ? <CronFields draft={draft} set={set} /> : <EveryField draft={draft} set={set} />}
      <UnsavedPreview draft={draft} />
      <Field label="If the previous run is still open">
        <Select
          value={draft.overlap}
          options={OVERLAPS}
          onSelect={(value) => set({ overlap: OVERLAPS.find((each) => each.value === value)?.value ?? "allow" })}
        />
      </Field>
      <Field label="Input" help="JSON input for each run. Leave empty for none.">
        <JsonEditor text={draft.input} onText={(input) => set({ input })} rows={4} />
      </Field>
    </ConfirmDialog>
  );
}

interface PartProps {
  readonly draft: Draft;
  readonly set: (patch: Partial<Draft>) => void;
}

function CronFields({ draft, set }: PartProps) {
  return (
    <>
      <Field
        label="Cron expression"
        help={cronWords(draft.cron) ?? "Minute, hour, day, month, weekday. Example: 0 6 * * MON-FRI"}
      >
        <TextInput value={draft.cron} onText={(cron) => set({ cron })} mono required />
      </Field>
      <Field label="Time zone" help="An IANA name, such as Europe/Berlin. Leave empty for UTC.">
        <TextInput value={draft.timezone} onText={(timezone) => set({ timezone })} mono />
      </Field>
    </>
  );
}

function EveryField({ draft, set }: PartProps) {
  return (
    <Field label="Every" help="A duration with its unit, such as 90s or 5m 30s.">
      <TextInput value={draft.every} onText={(every) => set({ every })} mono required />
    </Field>
  );
}

function draftOf(was: ScheduleView | null, workflow: string): Draft {
  const input = was?.input instanceof RawJson && was.input.text !== "null" ? pretty(was.input.text) : "";
  return {
    id: "",
    workflow: was?.workflow ?? workflow,
    kind: was !== null && was.every !== null ? "every" : "cron",
    cron: was?.cron ?? "0 6 * * MON-FRI",
    timezone: was === null ? Intl.DateTimeFormat().resolvedOptions().timeZone : was.timezone,
    every: was?.every ?? "1h",
    overlap: was?.overlap ?? "allow",
    input,
  };
}

/** Only the changed fields, if the schedule exists. */
function bodyOf(draft: Draft, was: ScheduleView | null): Record<string, unknown> {
  const times =
    draft.kind === "cron" ? { cron: draft.cron, timezone: draft.timezone.trim() || null } : { every: draft.every };
  const before = was === null ? null : draftOf(was, "");
  const timesChanged =
    before === null ||
    before.kind !== draft.kind ||
    (draft.kind === "cron"
      ? before.cron !== draft.cron || before.timezone !== draft.timezone
      : before.every !== draft.every);
  return {
    ...(timesChanged ? times : {}),
    ...(draft.workflow !== before?.workflow ? { workflow: draft.workflow.trim() } : {}),
    ...(draft.overlap !== before?.overlap ? { overlap: draft.overlap } : {}),
    ...(draft.input !== (before?.input ?? "") ? { input: new RawJson(draft.input.trim() || "null") } : {}),
    ...(was === null && draft.id.trim() !== "" ? { schedule: draft.id.trim() } : {}),
  };
}
