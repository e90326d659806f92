import assert from "node:assert/strict";
import { test } from "node:test";
import { DrawPace } from "../src/state/draw-pace";

/** Something changes every `everyMs`: how often it is drawn within a second, after so many seconds of it. */
function drawsASecond(pace: DrawPace, everyMs: number, seconds: number): number {
  let draws = 0;
  let due: number | null = null;
  for (let now = 0; now < seconds * 1000; now += 1) {
    if (due !== null && now >= due) {
      due = null;
      pace.drawn(now);
      if (now >= (seconds - 1) * 1000) draws += 1;
    }
    if (now % everyMs === 0) due ??= now + pace.waitMs(now);
  }
  return draws;
}

test("what happens now and then is drawn at once", () => {
  const pace = new DrawPace(250);
  for (let now = 0; now < 10_000; now += 1000) {
    for (const after of [0, 20, 40]) {
      assert.equal(pace.waitMs(now + after), 0);
      pace.drawn(now + after);
    }
  }
});

test("what happens all the time is drawn as often as was said", () => {
  assert.equal(drawsASecond(new DrawPace(250), 20, 10), 4);
});

test("what is slow to draw is drawn less often", () => {
  for (const [cost, draws] of [
    [12.5, 2],
    [25, 1],
  ] as const) {
    const pace = new DrawPace(250);
    pace.cost(cost);
    assert.equal(drawsASecond(pace, 20, 10), draws);
  }
});
