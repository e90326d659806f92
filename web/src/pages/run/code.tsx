// The run as a command, a request and a test, for copying.
import { useEffect, useState } from "preact/hooks";
import { api, base } from "../../api/client";
import type { Paged, StepView } from "../../api/types";
import { asCli, asCurl, asPytest, type RecordedStep, type Snippet } from "../../model/snippets";
import { namespace } from "../../state/route";
import { session } from "../../state/session";
import type { RunStore } from "../../state/run-store";
import { Button } from "../../ui/button";
import { CodeBlock } from "../../ui/code-block";
import { textOf } from "./values";

const PYTEST_STEPS = 200;

export function Code({ store, runId, step }: { store: RunStore; runId: string; step: StepView }) {
  const place = {
    origin: `${location.origin}${base}`.replace(/\/$/, ""),
    namespace: namespace.value,
    keys: session.value !== null && session.value.auth !== "off",
  };
  const what: Snippet =
    step.kind === "signal" && step.status === "running"
      ? { does: "signal", run: runId, name: step.name, payload: "{}" }
      : { does: "fork", run: runId, fromStep: step.step_id };
  const own = store.run.value?.run_id === runId;
  return (
    <div class="stack">
      <p class="dim">{what.does === "signal" ? "Send the signal" : "Run again from this step, as a new run"}</p>
      <CodeBlock text={asCli(what, place)} copy label="Command" />
      <CodeBlock text={asCurl(what, place)} copy label="Request" />
      {own ? <Pytest store={store} /> : null}
    </div>
  );
}

/** The run as a test, with the outputs of its steps. */
function Pytest({ store }: { store: RunStore }) {
  const [wanted, setWanted] = useState(false);
  const [text, setText] = useState("");
  const run = store.run.value;
  useEffect(() => {
    if (!wanted || run === null) return;
    recordedSteps(run.run_id).then(
      (steps) =>
        setText(asPytest({ run_id: run.run_id, workflow: run.workflow, output: textOf(run.output) ?? "" }, steps)),
      (error: unknown) => setText(`# ${error instanceof Error ? error.message : String(error)}`),
    );
  }, [wanted]);
  if (!wanted)
    return (
      <p>
        <Button onClick={() => setWanted(true)}>As a pytest with the recorded outputs</Button>
      </p>
    );
  return text === "" ? null : <CodeBlock text={text} copy label="Test" />;
}

async function recordedSteps(runId: string): Promise<RecordedStep[]> {
  const query = { payloads: "true", size: String(PYTEST_STEPS) };
  const page = await api.get<Paged<StepView>>(`/runs/${encodeURIComponent(runId)}/steps`, query, {
    raw: ["output", "input", "details"],
  });
  return page.rows.map((step) => ({
    name: step.name,
    kind: step.kind,
    output: step.status === "completed" ? (textOf(step.output) ?? "null") : "",
    error: step.error?.text ?? "",
  }));
}
