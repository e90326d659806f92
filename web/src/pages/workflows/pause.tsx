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
          ? "Waiting runs start as workers have capacity."
          : "New runs are accepted, but wait. Running runs continue until they next wait for something."
      }
    />
  );
}
