import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildScale,
  FOLD_PX,
  panRange,
  type ScaleInterval,
  ticksOf,
  type TimeScale,
  zoomRange,
  zoomScale,
} from "../src/model/time-scale";
import { forSeeds, type Random } from "./random";

const FOLDING = { unfolded: new Set<string>(), folding: true };
const T0 = Date.UTC(2026, 10, 16, 12);
const DAY = 86_400_000;

interface Case {
  intervals: ScaleInterval[];
  range: [number, number];
  width: number;
}

/** Steps and waits one after the other, and some side by side, of lengths between 1 ms and a month. */
function randomCase(random: Random): Case {
  const intervals: ScaleInterval[] = [];
  let at = T0 + random.next();
  for (let count = random.whole(0, 40); count > 0; count -= 1) {
    const length = random.chance(0.1) ? 0 : Math.exp(random.next() * 21.7);
    const wait = random.chance(0.4);
    intervals.push({ start: at, end: random.chance(0.05) ? null : at + length, wait });
    at += random.chance(0.7) ? length : random.next() * length;
    if (random.chance(0.3)) at += random.next() * 50;
  }
  return { intervals, range: [T0, at], width: random.whole(200, 2000) };
}

function scaleOf(each: Case, unfolded: readonly string[] = [], folding = true): TimeScale {
  return buildScale(each.intervals, each.range, each.width, { unfolded: new Set(unfolded), folding });
}

test("it begins at 0, ends at the width, and never runs back", () => {
  forSeeds(300, (random) => {
    const each = randomCase(random);
    const scale = scaleOf(each);
    assert.ok(Math.abs(scale.toX(scale.start)) < 1e-6);
    assert.ok(Math.abs(scale.toX(scale.end) - each.width) < 1e-6);
    assert.ok(Math.abs(scale.width - each.width) < 1e-6);
    const moments = Array.from({ length: 200 }, () => scale.start + random.next() * (scale.end - scale.start));
    for (const { start, end } of each.intervals) moments.push(start, end ?? scale.end);
    moments.sort((a, b) => a - b);
    for (let index = 1; index < moments.length; index += 1) {
      assert.ok(scale.toX(moments[index] as number) >= scale.toX(moments[index - 1] as number) - 1e-9);
    }
  });
});

test("it is exact to a pixel both ways, at any time and any zoom", () => {
  forSeeds(300, (random) => {
    const each = randomCase(random);
    let scale = scaleOf(each);
    for (let zooms = random.whole(0, 5); zooms > 0; zooms -= 1) {
      const range = zoomRange(scale, random.pick([0.5, 1.2, 2, 4]), random.next() * scale.width);
      scale = zoomScale(scale, range[0], range[1], each.width);
    }
    for (let count = 0; count < 30; count += 1) {
      const x = random.next() * scale.width;
      assert.ok(Math.abs(scale.toX(scale.toMs(x)) - x) < 1, `${x} came back as ${scale.toX(scale.toMs(x))}`);
      const ms = scale.start + random.next() * (scale.end - scale.start);
      const back = scale.toMs(scale.toX(ms));
      assert.ok(Math.abs(scale.toX(back) - scale.toX(ms)) < 1);
      assert.ok(Math.abs(back - ms) <= Math.max(0.01, (scale.end - scale.start) / 1e9), `${ms} came back as ${back}`);
    }
  });
});

test("at most 40 % of the width is folded, in stretches that are longer than a second", () => {
  let folded = 0;
  forSeeds(300, (random) => {
    const each = randomCase(random);
    const { gaps } = scaleOf(each);
    folded += gaps.length;
    const sum = gaps.reduce((total, gap) => total + gap.width, 0);
    assert.ok(sum <= each.width * 0.4 + 1e-6);
    for (const gap of gaps) {
      assert.ok(gap.width <= FOLD_PX);
      assert.ok(gap.end - gap.start > 1000);
      const inside = each.intervals.flatMap((one) => [one.start, one.end ?? each.range[1]]);
      assert.ok(!inside.some((ms) => ms > gap.start && ms < gap.end), "nothing begins or ends in a gap");
    }
  });
  assert.ok(folded > 300);
});

test("nothing is folded if every bar is 4 px wide without", () => {
  forSeeds(300, (random) => {
    const each = randomCase(random);
    const linear = scaleOf(each, [], false);
    const x = (ms: number | null) => linear.toX(Math.min(ms ?? linear.end, linear.end));
    const bars = each.intervals.map(({ start, end }) => x(end) - x(start));
    if (bars.every((px) => px >= 4)) assert.deepEqual(scaleOf(each).gaps, []);
  });
});

test("opening a gap moves nothing before it, and what is after it by the same width", () => {
  let opened = 0;
  forSeeds(300, (random) => {
    const each = randomCase(random);
    const before = scaleOf(each);
    if (!before.gaps.length) return;
    const gap = random.pick(before.gaps);
    const after = scaleOf(each, [gap.key]);
    const shift = after.width - before.width;
    opened += 1;
    assert.ok(shift >= -1e-6);
    for (let count = 0; count < 30; count += 1) {
      const early = before.start + random.next() * (gap.start - before.start);
      assert.equal(after.toX(early), before.toX(early));
      const late = gap.end + random.next() * (before.end - gap.end);
      assert.ok(Math.abs(after.toX(late) - before.toX(late) - shift) < 1e-6);
    }
    assert.equal(after.gaps.length, before.gaps.length);
    assert.equal(after.gaps.find((one) => one.key === gap.key)?.folded, false);
  });
  assert.ok(opened > 50);
});

test("a step of 200 ms on each side of a wait of a day is at least 40 px wide, and the gap says 1d", () => {
  const first = { start: T0, end: T0 + 200, wait: false };
  const day = { start: T0 + 200, end: T0 + 200 + DAY, wait: true };
  const second = { start: T0 + 201 + DAY, end: T0 + 401 + DAY, wait: false };
  const scale = buildScale([first, day, second], [T0, second.end], 600, FOLDING);
  for (const { start, end } of [first, second]) assert.ok(scale.toX(end) - scale.toX(start) >= 40);
  assert.deepEqual(
    scale.gaps.map((gap) => [gap.label, gap.width]),
    [["1d", FOLD_PX]],
  );
});

test("a gap that goes on is as long as it has been so far", () => {
  const intervals = [
    { start: T0, end: T0 + 200, wait: false },
    { start: T0 + 200, end: null, wait: true },
  ];
  const until = T0 + 57 * DAY;
  const [gap] = buildScale(intervals, [T0, T0 + 60 * DAY], 800, { ...FOLDING, until }).gaps;
  assert.equal(gap?.label, "57d");
});

test("a hundred sleeps of an hour leave their steps visible", () => {
  const intervals: ScaleInterval[] = [];
  for (let count = 0; count < 100; count += 1) {
    const start = T0 + count * 3_600_200;
    intervals.push({ start, end: start + 200, wait: false });
    intervals.push({ start: start + 200, end: start + 3_600_200, wait: true });
  }
  const scale = buildScale(intervals, [T0, T0 + 100 * 3_600_200], 1500, FOLDING);
  const steps = intervals.filter((each) => !each.wait);
  for (const { start } of steps) assert.ok(scale.toX(start + 200) - scale.toX(start) >= 4);
});

test("20,000 steps make a scale", () => {
  const intervals = Array.from({ length: 40_000 }, (_, index) => ({
    start: T0 + index * 10,
    end: T0 + index * 10 + 50,
    wait: index % 3 === 0,
  }));
  const scale = buildScale(intervals, [T0, T0 + 400_100], 1000, FOLDING);
  assert.ok(Math.abs(scale.toX(scale.end) - 1000) < 1e-6);
});

test("a range of nothing is a scale, too", () => {
  const scale = buildScale([], [T0, T0], 500, FOLDING);
  assert.ok(Number.isFinite(scale.toX(T0)) && Number.isFinite(scale.toMs(250)));
});

test("zoom keeps the moment under the pointer, pan stays within the whole", () => {
  forSeeds(200, (random) => {
    const each = randomCase(random);
    const whole = scaleOf(each);
    const x = random.next() * whole.width;
    const under = whole.toMs(x);
    const [from, to] = zoomRange(whole, 3, x);
    const zoomed = zoomScale(whole, from, to, each.width);
    assert.ok(Math.abs(zoomed.toX(under) - x) < 1);
    const [left, right] = panRange(zoomed, random.whole(-3000, 3000), whole);
    assert.ok(left >= whole.start - 0.01 && right <= whole.end + 0.01 && left < right);
  });
});

test("ticks are at round times of the zone, apart, and not in gaps", () => {
  forSeeds(200, (random) => {
    const each = randomCase(random);
    const scale = scaleOf(each);
    const ticks = ticksOf(scale, { zone: random.pick(["utc", "Europe/Berlin", "Asia/Kolkata"]), spacingPx: 80 });
    ticks.forEach((tick, index) => {
      assert.ok(tick.x >= -1e-6 && tick.x <= scale.width + 1e-6);
      if (index) assert.ok(tick.x - (ticks[index - 1]?.x ?? 0) >= 80);
      assert.ok(!scale.gaps.some((gap) => tick.ms > gap.start && tick.ms < gap.end));
    });
  });
  const scale = buildScale([], [T0, T0 + 3_600_000], 1000, FOLDING);
  assert.deepEqual(
    ticksOf(scale, { zone: "Asia/Kolkata", spacingPx: 200 }).map((tick) => tick.label),
    ["17:30", "17:45", "18:00", "18:15", "18:30"],
  );
  const since = ticksOf(scale, { zone: "utc", relativeTo: T0, spacingPx: 400 }).map((tick) => tick.label);
  assert.deepEqual(since, ["0", "+30m", "+1h"]);
});

test("ticks of hours stay on the hour across a change of the clocks", () => {
  const night = Date.UTC(2026, 9, 24, 20);
  const scale = buildScale([], [night, night + 12 * 3_600_000], 1200, FOLDING);
  const labels = ticksOf(scale, { zone: "Europe/Berlin", spacingPx: 90 }).map((tick) => tick.label);
  assert.ok(labels.every((label) => label.endsWith(":00")), labels.join(" "));
  assert.ok(labels.includes("02:00") && labels.includes("07:00"));
});
