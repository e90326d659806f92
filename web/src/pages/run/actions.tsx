// The actions on a run. Only those that the key permits and that are possible now are shown.
import type { TimelineStepView, WholeRunView } from "../../api/types";
import { isEnded } from "../../model/statuses";
import { can } from "../../state/session";
import type { RunStore } from "../../state/run-store";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Menu } from "../../ui/menu";
import { useShortcut } from "../../ui/shortcuts";
import { openDialog } from "./dialogs";

export function Actions({ run, selected }: { store: RunStore; run: WholeRunView; selected: TimelineStepView | null }) {
  const ended = isEnded(run.status);
  const mayAct = can("client");
  useShortcut("r", "Rerun", () => {
    if (mayAct) openDialog(run.status === "failed" ? { kind: "retry", step: "" } : { kind: "again" });
  });
  const isPaused = run.status === "paused" || run.pause_requested;
  return (
    <span class="run-actions">
      <Copy text={location.href} label="Copy link" wide kind="plain" />
      {mayAct && !ended ? <Button onClick={() => openDialog({ kind: "signal", name: "" })}>Signal…</Button> : null}
      {mayAct ? <Menu label="Rerun" items={rerunItems(run, selected)} /> : null}
      {mayAct && !ended && isPaused ? <Button onClick={() => openDialog({ kind: "resume" })}>Resume…</Button> : null}
      {mayAct && !ended && !isPaused ? <Button onClick={() => openDialog({ kind: "pause" })}>Pause…</Button> : null}
      {mayAct && !ended ? (
        <>
          <Button kind="danger" onClick={() => openDialog({ kind: "cancel" })}>
            Cancel…
          </Button>
          <Button kind="danger" onClick={() => openDialog({ kind: "terminate" })}>
            Terminate…
          </Button>
        </>
      ) : null}
    </span>
  );
}

function rerunItems(run: WholeRunView, selected: TimelineStepView | null): { label: string; onSelect: () => void }[] {
  const items: { label: string; onSelect: () => void }[] = [];
  if (run.status === "failed") {
    items.push({ label: "From the failure", onSelect: () => openDialog({ kind: "retry", step: "" }) });
  }
  if (selected !== null) {
    items.push({
      label: `From ${selected.step_id}, as a new run`,
      onSelect: () => openDialog({ kind: "fork", step: selected.step_id, edit: false }),
    });
  }
  items.push({ label: "From the start, as a new run", onSelect: () => openDialog({ kind: "again" }) });
  if (selected !== null && selected.status === "completed") {
    items.push({
      label: `With a different output of ${selected.step_id}`,
      onSelect: () => openDialog({ kind: "fork", step: selected.step_id, edit: true }),
    });
  }
  return items;
}
