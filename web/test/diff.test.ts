import assert from "node:assert/strict";
import { test } from "node:test";
import { alignSteps } from "../src/model/align";
import { diffJson, diffLines } from "../src/model/diff";
import { forSeeds } from "./random";
import { at, recording, step, T0 } from "./recordings";

test("lines of both texts are there, in order, and what is the same is told so", () => {
  forSeeds(400, (random) => {
    const text = () => Array.from({ length: random.whole(0, 12) }, () => random.pick(["a", "b", "c", "d"])).join("\n");
    const a = text();
    const b = text();
    const lines = diffLines(a, b);
    const of = (without: string) => lines.filter((line) => line.kind !== without);
    assert.equal(of("added").map((line) => line.text).join("\n"), a);
    assert.equal(of("removed").map((line) => line.text).join("\n"), b);
    of("added").forEach((line, index) => assert.equal(line.a, index + 1));
    of("removed").forEach((line, index) => assert.equal(line.b, index + 1));
    assert.equal(lines.filter((line) => line.kind === "same").length, longestCommon(a.split("\n"), b.split("\n")));
  });
});

function longestCommon(a: readonly string[], b: readonly string[]): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  const cell = (x: number, y: number) => table[x]?.[y] ?? 0;
  for (let x = 1; x <= a.length; x += 1) {
    for (let y = 1; y <= b.length; y += 1) {
      const longest = a[x - 1] === b[y - 1] ? cell(x - 1, y - 1) + 1 : Math.max(cell(x - 1, y), cell(x, y - 1));
      (table[x] as number[])[y] = longest;
    }
  }
  return cell(a.length, b.length);
}

test("texts that have nothing in common are told in bounded time", () => {
  const many = (word: string) => Array.from({ length: 20_000 }, (_, index) => word + index).join("\n");
  assert.equal(diffLines(many("a"), many("b")).length, 40_000);
});

test("JSON differs by value, not by order or space; digits count", () => {
  assert.deepEqual(diffJson('{"a":1,"b":[1,2]}', '{ "b": [1, 2], "a": 1 }'), []);
  assert.deepEqual(diffJson('{"a":{"b":1970670598291982290},"x":1}', '{"a":{"b":1970670598291982291},"y":1}'), [
    { path: "a.b", kind: "changed", before: "1970670598291982290", after: "1970670598291982291" },
    { path: "x", kind: "removed", before: "1", after: "" },
    { path: "y", kind: "added", before: "", after: "1" },
  ]);
  const twice = diffJson('{"a":1,"a":2}', '{"a":1,"a":3}');
  assert.deepEqual(twice, [{ path: "a", kind: "changed", before: "2", after: "3" }]);
  assert.deepEqual(diffJson("oops", "oops"), []);
  assert.equal(diffJson("oops", "1").length, 1);
});

test("steps are aligned by id; what is only in the second follows what it followed there", () => {
  const a = [step({ step_id: "one" }), step({ step_id: "two", status: "failed", created_at: at(10) })];
  const b = [
    step({ step_id: "zero" }),
    step({ step_id: "one", created_at: at(1), finished_at: at(301) }),
    step({ step_id: "extra", created_at: at(20) }),
    step({ step_id: "two", created_at: at(30), finished_at: at(130) }),
  ];
  assert.deepEqual(
    alignSteps(a, b, T0).map((row) => [row.stepId, !!row.a, !!row.b, row.longer, row.same]),
    [
      ["zero", false, true, null, false],
      ["one", true, true, 200, true],
      ["extra", false, true, null, false],
      ["two", true, true, 10, false],
    ],
  );
});

test("a run aligned with itself has no differences", () => {
  const { rows } = recording("ended");
  assert.ok(alignSteps(rows, rows, T0).every((row) => row.same && row.longer === 0));
});
