import assert from "node:assert/strict";
import { test } from "node:test";
import { countsByStep, formatShare, percentileMs, totalsOf } from "../src/model/stats";
import { toMs } from "../src/model/times";
import { forSeeds } from "./random";

const classOf = (ms: number) => Math.min(31, ms < 1 ? 0 : Math.floor(Math.log2(ms)) + 1);

test("a percentile is in the class of the true one", () => {
  forSeeds(200, (random) => {
    const durations = Array.from({ length: random.whole(1, 60) }, () => Math.exp(random.next() * 18));
    durations.sort((a, b) => a - b);
    const took = new Array<number>(32).fill(0);
    for (const ms of durations) took[classOf(ms)] = (took[classOf(ms)] ?? 0) + 1;
    for (const percent of [50, 95]) {
      const exact = durations[Math.max(Math.ceil((durations.length * percent) / 100), 1) - 1] as number;
      assert.equal(classOf(percentileMs(took, percent) as number), classOf(exact));
    }
  });
  assert.equal(percentileMs([], 50), null);
});

test("buckets add up", () => {
  const counts = { started: 3, completed: 1, failed: 1, cancelled: 0 };
  const bucket = { minute: "2026-11-16T12:00:00.000000Z", workflow: "a", ...counts };
  const buckets = [
    { ...bucket, took: [0, 2] },
    { ...bucket, minute: "2026-11-16T13:00:00.000000Z", took: [] },
  ];
  assert.deepEqual(totalsOf(buckets), {
    started: 6,
    completed: 2,
    failed: 2,
    cancelled: 0,
    failedShare: 0.5,
    p50: 1.25,
    p95: 1.75,
  });
  const from = toMs("2026-11-16T11:00:00Z");
  assert.deepEqual(countsByStep(buckets, from, 3_600_000, 3, (each) => each.started, toMs), [0, 3, 3]);
});

test("shares", () => {
  const shown = [0, 0.004, 0.099, 0.124, 1].map(formatShare);
  assert.deepEqual(shown, ["0%", "0.4%", "9.9%", "12%", "100%"]);
});
