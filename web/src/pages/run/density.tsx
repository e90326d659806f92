// How many steps were open at each time, and below, how many of those failed: two paths, whose cost does not grow with
// the number of steps.
import { areaPath } from "../../model/intervals";
import type { StateName } from "../../model/statuses";

export function Density({ counts, failed, state }: { counts: Uint32Array; failed: Uint32Array; state?: StateName }) {
  const most = counts.reduce((high, count) => Math.max(high, count), 1);
  return (
    <svg
      class="density"
      data-state={state}
      viewBox={`0 0 ${counts.length} 100`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path class="density-all" d={areaPath(counts, most, 12)} />
      <path class="density-failed" d={areaPath(failed, most, 8)} />
    </svg>
  );
}
