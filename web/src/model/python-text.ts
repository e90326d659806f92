// Renders values and recorded runs as Python code.
import { isJsonError, type JsonNode, nodeText, parseJsonText, scalarText } from "./json-text";

export function dict(pairs: readonly (readonly [string, string])[]): string {
  return `{${pairs.map(([key, value]) => `${pythonText(key)}: ${value}`).join(", ")}}`;
}

/** A JSON string is also a Python string. */
export function pythonText(value: string): string {
  return JSON.stringify(value);
}

/** JSON as a Python literal, with unchanged digits; text that is not JSON as a string. */
export function asPythonValue(json: string): string {
  const node = parseJsonText(json);
  return isJsonError(node) ? pythonText(json) : literal(node, json);
}

function literal(node: JsonNode, json: string): string {
  const children = node.children ?? [];
  if (node.kind === "array") return `[${children.map((each) => literal(each, json)).join(", ")}]`;
  if (node.kind === "object") return dict(children.map((each) => [each.key ?? "", literal(each, json)]));
  if (node.kind === "string") return pythonText(scalarText(node, json));
  const words: Record<string, string> = { true: "True", false: "False", null: "None" };
  const written = nodeText(node, json);
  return words[written] ?? written;
}

export interface RecordedStep {
  readonly name: string;
  readonly kind: string;
  /** JSON text; empty: no output. */
  readonly output: string;
  readonly error: string;
}

/** A run to render as a test. `output`: JSON text; empty: no output. */
export interface RecordedRun {
  readonly run_id: string;
  readonly workflow: string;
  readonly output: string;
}

/** A test that replays a run from its export with the recorded outputs, so that no step runs again. */
export function asPytest(run: RecordedRun, steps: readonly RecordedStep[]): string {
  const name = run.workflow.replace(/\W+/g, "_").toLowerCase();
  const result = run.output.trim();
  const names = steps.map((step) => pythonText(step.name)).join(", ");
  return `# kagzi export ${run.run_id} > ${name}.jsonl
import asyncio
from pathlib import Path

from kagzi import Kagzi, Worker
from your_module import ${name}

RECORDED = Path(__file__).with_name("${name}.jsonl")


def test_${name}() -> None:
    asyncio.run(replay())


async def replay() -> None:
    async with Worker(":memory:", workflows=[${name}]), Kagzi.connect(":memory:") as client:
        lines = RECORDED.read_bytes().splitlines()
        (recorded,) = [run async for run in client.import_runs(lines)]
        run = await client.fork(recorded.id)
        ${result ? `assert await run.result() == ${asPythonValue(result)}` : "await run.result()"}
        assert [step.name for step in await run.steps()] == [${names}]
`;
}
