import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTime, isZone, offsetOf, startOfDay, timesIn, toMs, toUtc, zoneName } from "../src/model/times";
import { forSeeds } from "./random";

test("microseconds survive", () => {
  assert.equal(toMs("2026-11-16T13:02:11.304123Z"), Date.UTC(2026, 10, 16, 13, 2, 11) + 304.123);
  assert.equal(toMs("2026-11-16T14:02:11+01:00"), Date.UTC(2026, 10, 16, 13, 2, 11));
  assert.ok(Number.isNaN(toMs("yesterday")));
  forSeeds(300, (random) => {
    const micros = random.whole(0, 4_000_000_000_000) * 1000 + random.whole(0, 999);
    const text = toUtc(micros / 1000);
    assert.equal(Math.round(toMs(text) * 1000), micros);
    assert.equal(toUtc(toMs(text)), text);
  });
});

test("times in a text are found, and nothing is lost", () => {
  const at = Date.UTC(2026, 10, 16, 13, 2, 11);
  assert.deepEqual(timesIn("It is tried again at 2026-11-16T13:02:11.304Z, in step a."), [
    "It is tried again at ",
    at + 304,
    ", in step a.",
  ]);
  assert.deepEqual(timesIn("2026-11-16T14:02:11+01:00"), [at]);
  assert.deepEqual(timesIn("order-2026-11-16 waits"), ["order-2026-11-16 waits"]);
});

test("every time has its zone, also across a change of the clocks", () => {
  const winter = Date.UTC(2026, 10, 16, 13, 2, 11, 304);
  const summer = Date.UTC(2026, 6, 1, 12, 0, 0);
  assert.equal(formatTime(winter, "Europe/Berlin", "time"), "14:02:11.304 CET");
  assert.equal(formatTime(summer, "Europe/Berlin", "datetime"), "2026-07-01 14:00:00 CEST");
  assert.equal(formatTime(winter, "utc", "datetime"), "2026-11-16 13:02:11 UTC");
  assert.equal(formatTime(winter, "America/New_York", "time"), "08:02:11.304 EST");
  assert.equal(zoneName(summer, "America/New_York"), "EDT");
  assert.equal(formatTime(winter, "utc", "date"), "2026-11-16 UTC");
  // 25 October 2026, 02:30 comes twice.
  const first = Date.UTC(2026, 9, 25, 0, 30);
  assert.equal(formatTime(first, "Europe/Berlin", "datetime"), "2026-10-25 02:30:00 CEST");
  assert.equal(formatTime(first + 3_600_000, "Europe/Berlin", "datetime"), "2026-10-25 02:30:00 CET");
});

test("days begin at midnight of the zone, also when they have 23 or 25 hours", () => {
  assert.equal(startOfDay(Date.UTC(2026, 2, 29, 12), "Europe/Berlin"), Date.UTC(2026, 2, 28, 23));
  assert.equal(startOfDay(Date.UTC(2026, 9, 25, 12), "Europe/Berlin"), Date.UTC(2026, 9, 24, 22));
  assert.equal(offsetOf(Date.UTC(2026, 6, 1), "Asia/Kolkata"), 5.5 * 3_600_000);
});

test("zones that nobody knows are told", () => {
  assert.ok(isZone("Europe/Berlin"));
  assert.ok(!isZone("Europe/Atlantis"));
});
