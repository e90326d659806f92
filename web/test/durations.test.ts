import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ageOf,
  formatDuration,
  groupThousands,
  parseDuration,
  shortAgeOf,
  speakDuration,
  untilOf,
} from "../src/model/durations";
import { forSeeds } from "./random";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;

test("a duration has two units at most and is never negative", () => {
  const cases: [number, string][] = [
    [-5, "<1ms"],
    [NaN, "<1ms"],
    [0, "<1ms"],
    [0.2, "<1ms"],
    [850, "850ms"],
    [999.6, "1s"],
    [1800, "1.8s"],
    [2000, "2s"],
    [9960, "10s"],
    [52 * S, "52s"],
    [59.7 * S, "1m"],
    [90 * S, "1m 30s"],
    [2 * H + 11 * M + 4 * S, "2h 11m"],
    [D, "1d"],
    [27 * H, "1d 3h"],
    [23 * H + 59 * M + 50 * S, "1d"],
    [12_345 * D, "12\u202f345d"],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test("a duration that is shown is read back within its last unit", () => {
  forSeeds(500, (random) => {
    const ms = Math.exp(random.next() * 25) - 1;
    const back = parseDuration(formatDuration(ms).replace("<", "").replace(/\u202f/g, ""));
    assert.ok(back !== null);
    assert.ok(Math.abs(back - ms) <= Math.max(1, ms * 0.05), `${ms} became ${back}`);
  });
});

test("durations are written as the server takes them", () => {
  assert.equal(parseDuration("5m 30s"), 330 * S);
  assert.equal(parseDuration("1.5h"), 1.5 * H);
  assert.equal(parseDuration("2 weeks"), 14 * D);
  assert.equal(parseDuration("1 day, 2 hours"), 26 * H);
  for (const wrong of ["", "90", "s", "5 parsecs", "-5s", "5s x"]) assert.equal(parseDuration(wrong), null, wrong);
});

test("ages are relative up to a day, and never in the future", () => {
  assert.equal(ageOf(0, 12_400), "12s ago");
  assert.equal(ageOf(5000, 0), "now");
  assert.equal(ageOf(0, 5 * H), "5h ago");
  assert.equal(ageOf(0, 2 * D, "utc"), "1970-01-01 00:00:00 UTC");
  assert.equal(shortAgeOf(0, 57 * D + H), "57d ago");
});

test("countdowns do not say zero while time is left", () => {
  assert.equal(untilOf(18_000, 0), "in 18s");
  assert.equal(untilOf(200, 0), "in 1s");
  assert.equal(untilOf(0, 200), "now");
});

test("screen readers hear words", () => {
  assert.equal(speakDuration(52 * S), "52 seconds");
  assert.equal(speakDuration(2 * H + 11 * M), "2 hours 11 minutes");
  assert.equal(speakDuration(M), "1 minute");
  assert.equal(speakDuration(850), "850 milliseconds");
});

test("counts have a thin space at thousands", () => {
  assert.equal(groupThousands(20_000), "20\u202f000");
  assert.equal(groupThousands(999), "999");
});
