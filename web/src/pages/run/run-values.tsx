// The input and output of the run.
import type { WholeRunView } from "../../api/types";
import { ErrorText } from "./errors";
import { textOf, Value } from "./values";

export function RunValues({ run }: { run: WholeRunView }) {
  const context = textOf(run.context);
  const output = textOf(run.output);
  return (
    <div class="run-values">
      <section>
        <h2>Input</h2>
        <Value text={textOf(run.input) ?? "null"} label="Input" />
      </section>
      <section>
        <h2>{run.error !== null ? "Error" : "Result"}</h2>
        {run.error !== null ? <ErrorText error={run.error} /> : null}
        {run.error === null && run.status === "completed" ? <Value text={output ?? "null"} label="Result" /> : null}
        {run.error === null && run.status !== "completed" ? <p class="dim">None yet.</p> : null}
      </section>
      {context !== null && context !== "null" && context !== "{}" ? (
        <section>
          <h2>Context</h2>
          <Value text={context} label="Context" />
        </section>
      ) : null}
    </div>
  );
}
