import { useState } from "preact/hooks";
import { api } from "../../api/client";
import type { ScheduleView, TriggeredView } from "../../api/types";
import { notice } from "../../state/notices";
import { go, href, segment } from "../../state/route";
import { can } from "../../state/session";
import { Button } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialog";
import { Field, TextInput } from "../../ui/field";
import { Menu } from "../../ui/menu";
import { BackfillDialog } from "./backfill";
import { ScheduleForm } from "./form";

type Open = "" | "pause" | "resume" | "trigger" | "backfill" | "edit" | "delete";

interface ActionsProps {
  readonly schedule: ScheduleView;
  readonly onChanged: () => void;
}

export function Actions({ schedule, onChanged }: ActionsProps) {
  const [open, setOpen] = useState<Open>("");
  const close = (): void => setOpen("");
  if (!can("client")) return null;
  const done = (text: string, to?: string): void => {
    close();
    notice(text, to === undefined ? {} : { href: to });
    onChanged();
  };
  return (
    <div class="page-actions">
      <Button onClick={() => setOpen("trigger")}>Trigger…</Button>
      {schedule.paused ? (
        <Button onClick={() => setOpen("resume")}>Resume…</Button>
      ) : (
        <Button onClick={() => setOpen("pause")}>Pause…</Button>
      )}
      <Button onClick={() => setOpen("edit")}>Edit…</Button>
      <Menu
        label="More"
        align="end"
        items={[
          { label: "Backfill…", hint: "Start runs for missed times", onSelect: () => setOpen("backfill") },
          { label: "Delete…", danger: true, icon: "trash", onSelect: () => setOpen("delete") },
        ]}
      />
      {(open === "pause" || open === "resume") && <PauseDialog schedule={schedule} onClose={close} onDone={done} />}
      {open === "trigger" && <TriggerDialog schedule={schedule} onClose={close} onDone={done} />}
      {open === "delete" && <DeleteDialog schedule={schedule} onClose={close} />}
      {open === "backfill" && <BackfillDialog schedule={schedule} onClose={close} onDone={done} />}
      {open === "edit" && <ScheduleForm was={schedule} workflow="" onClose={close} onSaved={onChanged} />}
    </div>
  );
}

export interface ActionProps {
  readonly schedule: ScheduleView;
  readonly onClose: () => void;
  readonly onDone: (text: string, href?: string) => void;
}

function PauseDialog({ schedule, onClose, onDone }: ActionProps) {
  const [reason, setReason] = useState("");
  const verb = schedule.paused ? "resume" : "pause";
  const act = async (key: string): Promise<void> => {
    await api.send("POST", `/schedules/${segment(schedule.schedule)}/${verb}`, verb === "pause" ? { reason } : {}, {
      key,
    });
    onDone(`${schedule.schedule} is ${verb === "pause" ? "paused" : "resumed"}`);
  };
  return (
    <ConfirmDialog
      title={`${verb === "pause" ? "Pause" : "Resume"} ${schedule.schedule}?`}
      verb={verb === "pause" ? "Pause" : "Resume"}
      onConfirm={act}
      onClose={onClose}
      touches={
        verb === "pause"
          ? "The schedule starts no runs until you resume it, and then does not make up for missed times. Open runs continue."
          : "The schedule continues with its next time. To start runs for times missed while paused, use Backfill."
      }
    >
      {verb === "pause" && (
        <Field label="Reason" help="Optional. Shown with the schedule.">
          <TextInput value={reason} onText={setReason} />
        </Field>
      )}
    </ConfirmDialog>
  );
}

function TriggerDialog({ schedule, onClose, onDone }: ActionProps) {
  const act = async (key: string): Promise<void> => {
    const path = `/schedules/${segment(schedule.schedule)}/trigger`;
    const started = await api.send<TriggeredView>("POST", path, {}, { key });
    onDone(`Started ${started.workflow_id}`, href(`/runs/${segment(started.run_id)}`));
  };
  return (
    <ConfirmDialog
      title={`Trigger ${schedule.schedule} now?`}
      verb="Trigger"
      onConfirm={act}
      onClose={onClose}
      touches={
        <p>
          Starts one run of <strong>{schedule.workflow}</strong> now, with the schedule's input
          {schedule.paused ? ", even though the schedule is paused" : ""}. Its times do not change.
        </p>
      }
    />
  );
}

function DeleteDialog({ schedule, onClose }: { readonly schedule: ScheduleView; readonly onClose: () => void }) {
  const act = async (key: string): Promise<void> => {
    await api.send("DELETE", `/schedules/${segment(schedule.schedule)}`, {}, { key });
    notice(`Deleted ${schedule.schedule}`);
    go(href("/schedules"));
  };
  return (
    <ConfirmDialog
      title={`Delete ${schedule.schedule}?`}
      verb="Delete"
      danger
      onConfirm={act}
      onClose={onClose}
      touches={
        <p>
          The schedule for <strong>{schedule.workflow}</strong> is deleted permanently. Runs that it started are kept.
        </p>
      }
    />
  );
}
