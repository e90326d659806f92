import { api } from "../../api/client";
import type { WorkflowTypeView } from "../../api/types";
import { notice } from "../../state/notices";
import { segment } from "../../state/route";
import { ConfirmDialog } from "../../ui/dialog";

interface PauseDialogProps {
  readonly type: WorkflowTypeView;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** Pauses a type, or resumes it. */
export function PauseDialog({ type, onClose, onChanged }: PauseDialogProps) {
  const verb = type.paused ? "resume" : "pause";
  const act = async (key: string): Promise<void> => {
    await api.send("POST", `/workflows/${segment(type.workflow)}/${verb}`, {}, { key });
    onClose();
    notice(`${type.workflow} is ${type.paused ? "resumed" : "paused"}`);
    onChanged();
  };
  return (
    <ConfirmDialog
      title={`${type.paused ? "Resume" : "Pause"} ${type.workflow}`}
      verb={type.paused ? "Resume" : "Pause"}
      onConfirm={act}
      onClose={onClose}
      touches={
        type.paused
          ? "Runs that wait begin, as workers have room for them."
          : "Starts are accepted and wait. Runs that a worker has go on until they wait for something."
      }
    />
  );
}
