// How many steps were open at each time, as one path: its cost does not grow with the number of steps.
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
      <path class="density-all" d={areaOf(counts, most)} />
      <path class="density-failed" d={marksOf(failed)} />
    </svg>
  );
}

function areaOf(counts: Uint32Array, most: number): string {
  let path = "M0 100";
  // a single step among thousands stays visible
  counts.forEach((count, at) => (path += `V${count === 0 ? 100 : Math.min(88, 100 - (count / most) * 100)}H${at + 1}`));
  return `${path}V100Z`;
}

function marksOf(failed: Uint32Array): string {
  let path = "";
  failed.forEach((count, at) => (path += count > 0 ? `M${at} 0H${at + 1}V100H${at}Z` : ""));
  return path;
}
