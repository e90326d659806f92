import type { ServedView, WorkerView } from "../../api/types";
import type { IconName, StateName } from "../../model/statuses";
import { Icon } from "../../ui/icon";

type Status = WorkerView["status"];

const LOOKS: Readonly<Record<Status, { readonly state: StateName; readonly icon: IconName; readonly title: string }>> =
  {
    online: { state: "completed", icon: "check", title: "Accepts runs" },
    draining: { state: "waiting", icon: "pause", title: "Finishes its runs and accepts no more" },
    offline: { state: "cancelled", icon: "minus", title: "Stopped or unreachable" },
  };

export function WorkerStatus({ status }: { readonly status: Status }) {
  const { state, icon, title } = LOOKS[status];
  return (
    <span class="badge" data-state={state} title={title}>
      <Icon name={icon} />
      {status}
    </span>
  );
}

export function Slots({ active, most }: { readonly active: number; readonly most: number }) {
  return (
    <span class="progress-row" title={`${active} of ${most} slots are in use`}>
      <progress class="progress" max={Math.max(1, most)} value={active} aria-label="Slots in use" />
      <span class="nowrap">
        {active}/{most}
      </span>
    </span>
  );
}

/** `process-order v1, refund v1 and 3 more` */
export function servedText(served: readonly ServedView[], most = 2): string {
  const names = served.slice(0, most).map((each) => `${each.workflow} v${each.version}`);
  const rest = served.length - names.length;
  return rest > 0 ? `${names.join(", ")} and ${rest} more` : names.join(", ");
}
