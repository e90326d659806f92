import { groupThousands } from "../model/durations";
import type { StateName } from "../model/statuses";

/** `35 completed`, in the colour of the state; a count of zero is muted. */
export function Total({ count, state }: { readonly count: number; readonly state: StateName }) {
  const words = `${groupThousands(count)} ${state}`;
  return count > 0 ? <span data-state={state}>{words}</span> : <span class="dim">{words}</span>;
}
