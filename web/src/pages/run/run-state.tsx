// The state that the workflow sets with `ctx.set_state`.
import type { WholeRunView } from "../../api/types";
import { toMs } from "../../model/times";
import { Since } from "../../ui/time";
import { textOf, Value } from "./values";

export function RunState({ run }: { run: WholeRunView }) {
  const text = textOf(run.state);
  if (text === null || run.state_at === null) return null;
  return (
    <details class="run-shown-state" open>
      <summary>
        State <span class="dim">{"set "}</span>
        <Since ms={toMs(run.state_at)} />
      </summary>
      <Value text={text} label="State" />
    </details>
  );
}
