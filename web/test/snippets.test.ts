import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { asCli, asCurl, asPython, asPythonValue, asPytest, shellWord, type StartSnippet } from "../src/model/snippets";
import { forSeeds } from "./random";

const ODD = '{"id": 1970670598291982290, "who": "O\'Brien", "a": 1, "a": 2}';
const START: StartSnippet = {
  does: "start",
  workflow: "order",
  input: ODD,
  workflowId: "o 1",
  labels: [["team", "a"]],
  priority: 5,
};
const PLACE = { origin: "http://localhost:8420", namespace: "production", keys: true };

test("a shell reads back what was quoted", () => {
  const words: string[] = [];
  forSeeds(60, (random) => words.push(random.text("ab '\"\\$`!*?~#&|;<>(){}[]\té", 8)));
  const echoed = execFileSync("sh", ["-c", `printf '%s\\0' ${words.map(shellWord).join(" ")}`], { encoding: "utf8" });
  assert.deepEqual(echoed.split("\0").slice(0, -1), words);
});

test("as a command", () => {
  assert.equal(
    asCli(START, PLACE),
    `kagzi start order '{"id": 1970670598291982290, "who": "O'\\''Brien", "a": 1, "a": 2}' --id 'o 1' ` +
      "--label team=a --priority 5 --namespace production",
  );
  assert.equal(asCli({ does: "signal", run: "r1", name: "level", payload: "-5" }), "kagzi signal r1 level -- -5");
  assert.equal(asCli({ does: "wake", run: "r1", step: "charge[1]" }), "kagzi wake r1 'charge[1]'");
  assert.equal(
    asCli({ does: "fork", run: "r1", fromStep: "b", outputs: [["a", '{"x": 1}']] }),
    `kagzi fork r1 --from-step b --output 'a={"x": 1}'`,
  );
});

test("as a request, the input to the byte", () => {
  const curl = asCurl(START, PLACE);
  assert.ok(curl.includes("'http://localhost:8420/api/v1/runs?namespace=production'"));
  assert.ok(curl.includes(`"input": ${ODD.replace("'", "'\\''")}`));
  assert.ok(curl.includes("$KAGZI_API_KEY"));
  const wake = asCurl({ does: "wake", run: "r/1", step: "a#2" }, { ...PLACE, namespace: "default", keys: false });
  assert.ok(wake.includes("/runs/r%2F1/step/wake?id=a%232'"), wake);
  assert.ok(!wake.includes("Bearer"));
});

test("as Python: literals of Python, digits as they are", () => {
  assert.equal(asPythonValue('{"a": [true, null, 1.50, "x\\ny"]}'), '{"a": [True, None, 1.50, "x\\ny"]}');
  assert.ok(asPython(START, PLACE).includes('labels={"team": "a"}, priority=5)'));
  assert.ok(asPython(START, PLACE).includes('Kagzi.connect(namespace="production")'));
  assert.ok(asPython({ does: "retry", run: "r", fromStep: "b" }).includes('await client.retry("r", from_step="b")'));
});

test("as a test, with recorded outputs", () => {
  const code = asPytest({ run_id: "0192", workflow: "process-order", output: '{"ok": true}' }, [
    { name: "charge", kind: "function", output: "1", error: "" },
    { name: "nap", kind: "sleep", output: "null", error: "" },
  ]);
  assert.ok(code.startsWith("# kagzi export 0192 > process_order.jsonl\n"));
  assert.ok(code.includes("from your_module import process_order\n"));
  assert.ok(code.includes('        assert await run.result() == {"ok": True}\n'));
  assert.ok(code.includes('== ["charge", "nap"]\n'));
});
