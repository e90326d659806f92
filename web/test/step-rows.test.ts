import assert from "node:assert/strict";
import { test } from "node:test";
import { axisMarks } from "../src/model/axis-marks";
import { buildRows, describeRow, failuresIn, revealStep, type Row, type RowView } from "../src/model/step-rows";
import { EVERY_STEP, haltSegments, scaleIntervals, segmentsOf } from "../src/model/step-rows";
import { captionOf } from "../src/model/row-words";
import { buildScale } from "../src/model/time-scale";
import { toMs } from "../src/model/times";
import { at, manySteps, recording, step, T0 } from "./recordings";

function view(change: Partial<RowView> = {}): RowView {
  return { runId: "r", now: T0 + 60_000, toggled: new Set(), ...change };
}

function outline(rows: readonly Row[]): string[] {
  return rows.map((row) => `${"  ".repeat(row.level - 1)}${row.label} ${row.state}`);
}

test("a run that waits in a race, as it was recorded", () => {
  const rows = buildRows(recording("waiting").rows, view());
  assert.deepEqual(outline(rows), [
    "fetch-user completed",
    "charge-card completed",
    "pause completed",
    "changed:new-mail completed",
    "mail completed",
    "parallel completed",
    "  left completed",
    "  right completed",
    "enrich completed",
    "  enrich[0] completed",
    "  enrich[1] completed",
    "  enrich[2] completed",
    "race completed",
    "  never abandoned",
    "  limit completed",
    "race#2 waiting",
    "  approve waiting",
    "  late sleeping",
  ]);
  const row = (label: string) => rows.find((each) => each.label === label) as Row;
  assert.equal(row("limit").won, true);
  assert.equal(row("limit").segments.at(-1)?.mark, "won");
  assert.equal(row("never").lostTo, "limit");
  assert.equal(row("race").isRace && row("race#2").isRace, true);
  assert.equal(row("approve").lostTo, "");
  const card = row("charge-card");
  assert.equal(card.attempts, 3);
  assert.deepEqual(
    card.segments.map((each) => [each.shape, each.state, each.mark ?? ""]),
    [
      ["attempt", "failed", "cross"],
      ["backoff", "retrying", ""],
      ["attempt", "failed", "cross"],
      ["backoff", "retrying", ""],
      ["attempt", "completed", ""],
    ],
  );
  assert.equal(describeRow(card, T0), "charge-card, completed, 3 attempts, 3.2 seconds");
  assert.equal(captionOf(row("pause"), T0), "slept 3s");
  assert.deepEqual([row("enrich[1]").setSize, row("enrich[1]").posInSet, row("enrich[1]").level], [3, 2, 2]);
});

test("segments of a step are in order and do not overlap, in all recordings", () => {
  for (const name of ["waiting", "ended", "retrying"]) {
    for (const each of recording(name).rows) {
      let last = -Infinity;
      for (const { start, end } of segmentsOf(each)) {
        assert.ok(start >= last && (end === null || end >= start), each.step_id);
        last = end ?? Infinity;
      }
    }
  }
});

test("branches of a parallel stay together, a child is a row that opens", () => {
  const rows = buildRows(recording("ended").rows, view());
  const from = rows.findIndex((row) => row.label === "small");
  assert.deepEqual(outline(rows.slice(from)), [
    "small completed",
    "parallel#2 completed",
    "  one completed",
    "  one completed",
    "  two completed",
    "  two completed",
    "doomed failed",
  ]);
  const child = rows[from] as Row;
  assert.deepEqual([child.kind, child.expanded, child.segments[0]?.shape], ["child", false, "child"]);
  const opened = buildRows(recording("ended").rows, {
    ...view({ toggled: new Set([child.key]) }),
    children: new Map([[child.childRunId, { steps: [step({ step_id: "inner" })], more: true, loading: false }]]),
  });
  const opening = outline(opened.slice(from, from + 3));
  assert.deepEqual(opening, ["small completed", "  inner completed", "  load more steps pending"]);
  assert.equal(opened[from + 1]?.runId, child.childRunId);
});

test("a step that waits for its next attempt: crosses, a dotted line, a diamond at the stored time", () => {
  const [row] = buildRows(recording("retrying").rows, view()).filter((each) => each.label === "charge-card");
  assert.ok(row?.step);
  assert.equal(row.state, "retrying");
  assert.equal(row.attempts, 2);
  assert.equal(row.segments.filter((each) => each.mark === "cross").length, 2);
  const last = row.segments.at(-1);
  assert.equal(last?.mark, "next");
  assert.equal(last?.until, toMs(row.step.retry_at ?? ""));
  assert.equal(last?.end, null);
});

test("20,000 equal names are one row, and open to all of them with failures first", () => {
  const steps = manySteps(20_000, (index) => (index === 36 ? { status: "failed", error: "ValueError: x" } : {}));
  const rows = buildRows(steps, view());
  assert.deepEqual(
    rows.map((row) => [row.label, row.kind, row.steps, row.done, row.failed, row.expanded]),
    [["enrich × 20\u202f000", "fold", 20_000, 20_000, 1, false]],
  );
  assert.deepEqual(failuresIn(steps), ["enrich[36]"]);
  const toggled = revealStep(steps, view(), "enrich[36]");
  const opened = buildRows(steps, view({ toggled }));
  assert.equal(opened.length, 20_001);
  assert.equal(opened[1]?.label, "enrich[36]");
  assert.equal(opened[1]?.setSize, 20_000);
});

test("rows cost the same for each step, and what is not looked at is not drawn", () => {
  const looksAt = (count: number, toggled: ReadonlySet<string>) => {
    let looks = 0;
    const watched = manySteps(count).map(
      (each) =>
        new Proxy(each, {
          get(target, name, receiver): unknown {
            looks += 1;
            return Reflect.get(target, name, receiver);
          },
        }),
    );
    const rows = buildRows(watched, view({ toggled }));
    const made = looks;
    for (const row of rows.slice(0, 10)) assert.ok(row.segments);
    return [made / count, looks - made] as const;
  };
  for (const toggled of [new Set<string>(), new Set(["group:enrich"])]) {
    const [few] = looksAt(3_000, toggled);
    const [many, drawing] = looksAt(20_000, toggled);
    assert.ok(many < 60 && Math.abs(many - few) < 1, `${few} and ${many} looks at each step`);
    assert.ok(drawing < 500);
  }
});

test("equal names fold also where they are not of a map, and from 51 on", () => {
  const loop = (count: number) =>
    Array.from({ length: count }, (_, index) => [
      step({ step_id: index ? `get#${index + 1}` : "get", name: "get", begun_seq: index * 2, created_at: at(index) }),
      step({ step_id: `other-${index}`, begun_seq: index * 2 + 1, created_at: at(index) }),
    ]).flat();
  assert.equal(buildRows(loop(50), view()).length, 100);
  const rows = buildRows(loop(51), view());
  assert.equal(rows.length, 52);
  assert.equal(rows[0]?.label, "get × 51");
});

test("a parallel of many equal steps is called by their name", () => {
  const steps = manySteps(60, (index) => ({
    step_id: index ? `enrich#${index + 1}` : "enrich",
    name: "enrich",
    parallel_group: "parallel",
  }));
  assert.deepEqual(outline(buildRows(steps, view())), ["enrich × 60 completed"]);
  const toggled = revealStep(steps, view(), "enrich#7");
  assert.equal(buildRows(steps, view({ toggled })).length, 61);
});

test("a retried step keeps its row's place", () => {
  const first = step({ step_id: "a", begun_seq: 9, created_at: at(0) });
  const second = step({ step_id: "b", begun_seq: 2, created_at: at(5) });
  assert.deepEqual(outline(buildRows([second, first], view())), ["a completed", "b completed"]);
});

test("steps of nested branches are under each other", () => {
  const steps = [
    step({ step_id: "parallel[0]/map[1]", parallel_group: "parallel[0]/map", begun_seq: 1 }),
    step({ step_id: "parallel[1]/last", parallel_group: "parallel", begun_seq: 2 }),
  ];
  assert.deepEqual(outline(buildRows(steps, view())), [
    "parallel completed",
    "  map completed",
    "    map[1] completed",
    "  last completed",
  ]);
});

test("what a retry of the run discarded is folded before the rest, a group for each retry", () => {
  const { rows: steps } = recording("retried-run");
  const lost = [step({ step_id: "fails", status: "failed", error: "ValueError: no luck" }), step({ step_id: "last" })];
  const group = { retrySeq: 9, label: "before the retry", count: 2, steps: null, failed: false };
  const closed = buildRows(steps, view({ discarded: [{ ...group, retrySeq: 12 }, group] }));
  assert.deepEqual(outline(closed).slice(0, 3), [
    "before the retry abandoned",
    "before the retry abandoned",
    "first completed",
  ]);
  assert.deepEqual(closed.slice(0, 2).map((row) => [row.key, row.expanded]), [["before:12", false], ["before:9", false]]);
  assert.equal(describeRow(closed[0]!, 0), "before the retry, 2 steps");
  const toggled = new Set(["before:9"]);
  const loading = buildRows(steps, view({ discarded: [group], toggled }));
  assert.deepEqual([loading[1]?.kind, loading[1]?.label], ["more", "loading"]);
  const failed = buildRows(steps, view({ discarded: [{ ...group, failed: true }], toggled }));
  assert.equal(failed[1]?.label, "not loaded: try again");
  const opened = buildRows(steps, view({ discarded: [{ ...group, steps: lost }], toggled }));
  assert.deepEqual(opened.slice(1, 4).map((row) => [row.key, row.level, row.discarded]), [
    ["before:9:fails", 2, true],
    ["before:9:last", 2, true],
    ["first", 1, false],
  ]);
  const filter = { ...EVERY_STEP, failed: true };
  const filtered = buildRows(steps, view({ discarded: [{ ...group, steps: lost }], toggled, filter }));
  assert.deepEqual(filtered.map((row) => row.key), ["before:9", "before:9:fails"]);
  const marks = axisMarks([...steps].reverse(), [{ retry_seq: 9, retried_at: at(5), steps: 2 }]);
  assert.deepEqual(marks.map((mark) => mark.kind), ["retry"]);
});

test("marks: patches, and another worker", () => {
  const marks = axisMarks([
    step({ step_id: "a", worker_id: "w1" }),
    step({ step_id: "changed:x", kind: "patch", name: "x" }),
    step({ step_id: "b", worker_id: "w2" }),
  ]);
  assert.deepEqual(marks.map((mark) => mark.label), ["changed: x", "w1, then w2"]);
});

test("filters: text, failed, slowest, kind, without patches", () => {
  const steps = manySteps(100, (index) => ({ finished_at: at(index * 10) }));
  const shown = (change: Partial<typeof EVERY_STEP>) =>
    buildRows(steps, view({ filter: { ...EVERY_STEP, ...change } })).filter((row) => row.kind === "step").length;
  assert.equal(shown({ text: "ENRICH[7]" }), 1);
  assert.equal(shown({ slowest: true }), 5);
  assert.equal(shown({ failed: true }), 0);
  assert.equal(shown({ kinds: ["sleep"] }), 0);
  const recorded = recording("waiting").rows;
  const without = buildRows(recorded, view({ filter: { ...EVERY_STEP, marks: false } }));
  assert.equal(without.length, buildRows(recorded, view()).length - 1);
});

test("a recorded run has a scale on which all its bars are in order", () => {
  const steps = recording("ended").rows;
  const intervals = scaleIntervals(steps);
  const begin = Math.min(...intervals.map((each) => each.start));
  const end = Math.max(...intervals.map((each) => each.end ?? 0));
  const scale = buildScale(intervals, [begin, end], 600, { unfolded: new Set(), folding: true });
  assert.ok(scale.gaps.length > 0);
  assert.ok(scale.gaps.some((gap) => gap.label === "3s"));
});

test("a bar says where another worker went on", () => {
  const attempts = [
    { started_at: at(0), finished_at: at(10), worker_id: "one" },
    { started_at: at(20), finished_at: at(30), worker_id: "one" },
    { started_at: at(40), finished_at: at(50), worker_id: null },
  ];
  const moved = step({ step_id: "charge", attempt: 4, attempts, started_at: at(60), worker_id: "two" });
  const handovers = segmentsOf(moved).map((each) => each.workers ?? null);
  assert.deepEqual(handovers, [null, null, null, null, null, null, ["one", "two"]]);
});

test("a pause is a stretch of the scale in which nothing happens", () => {
  const pauses = [
    { kind: "paused" as const, started_at: at(1_000), finished_at: at(3_601_000), reason: "look first" },
    { kind: "paused" as const, started_at: at(3_603_000), finished_at: null, reason: null },
  ];
  assert.deepEqual(
    haltSegments(pauses).map(({ shape, start, end }) => [shape, start - T0, end === null ? null : end - T0]),
    [
      ["paused", 1_000, 3_601_000],
      ["paused", 3_603_000, null],
    ],
  );
  const steps = [step({ step_id: "a", finished_at: at(1_000) }), step({ step_id: "b", started_at: at(3_602_000) })];
  const intervals = scaleIntervals(steps, pauses);
  const scale = buildScale(intervals, [T0, T0 + 3_604_000], 600, { unfolded: new Set(), folding: true });
  assert.ok(scale.gaps.some((gap) => gap.folded && gap.start <= T0 + 1_000 && gap.end === T0 + 3_601_000));
});
