import assert from "node:assert/strict";
import { test } from "node:test";
import {
  chipsOf,
  describeFilter,
  EVERY_RUN,
  filterFromQuery,
  filterToBody,
  filterToQuery,
  filterToUrl,
  formatFilter,
  parseFilter,
  RUN_STATUSES,
  type RunFilter,
  sameFilter,
  shortcuts,
} from "../src/model/filters";
import { forSeeds, type Random } from "./random";

test("the box, the address and the filter are three views of one thing", () => {
  forSeeds(500, (random) => {
    const filter = randomFilter(random);
    const read = parseFilter(formatFilter(filter));
    assert.deepEqual(read.errors, []);
    assert.deepEqual(read.filter, filter);
    assert.deepEqual(filterFromQuery(new URLSearchParams(filterToUrl(filter))), filter);
    assert.ok(sameFilter(filter, read.filter));
  });
});

test("each chip drops one condition", () => {
  forSeeds(100, (random) => {
    const filter = randomFilter(random);
    const chips = chipsOf(filter, "utc");
    for (const chip of chips) assert.equal(chipsOf(chip.without, "utc").length, chips.length - 1);
  });
});

test("words that say nothing are named, the others count", () => {
  const { filter, errors } = parseFilter("status:failed colour:red since:soon is:happy label:x 0192 0193 workflow:");
  assert.deepEqual(filter.status, ["failed"]);
  assert.equal(filter.id_prefix, "0192");
  assert.deepEqual(
    errors.map((error) => error.word),
    ["0192 0193", "colour:red", "since:soon", "is:happy", "label:x", "workflow:"],
  );
});

test("the box takes lists, quotes and statuses as `is`", () => {
  const { filter } = parseFilter('status:failed,paused workflow:"my type" is:running "a:b"');
  assert.deepEqual(filter.status, ["failed", "paused", "running"]);
  assert.deepEqual(filter.workflow, ["my type"]);
  assert.equal(filter.id_prefix, "a:b");
});

test("durations become times of the whole minute", () => {
  const now = Date.UTC(2026, 10, 16, 12, 0, 30);
  assert.deepEqual(filterToQuery(shortcuts.failedToday, now), [
    ["status", "failed"],
    ["ended_since", "2026-11-15T12:00:00.000000Z"],
  ]);
  assert.deepEqual(filterToUrl(shortcuts.failedToday)[1], ["ended_since", "24h"]);
  assert.deepEqual(filterToBody({ ...EVERY_RUN, label: ["a=b=c"], failing: true }, now), {
    labels: { a: "b=c" },
    failing: true,
  });
});

test("a filter in words", () => {
  assert.equal(describeFilter(EVERY_RUN), "all runs");
  const filter = parseFilter("status:failed,paused workflow:order since:24h label:team=a").filter;
  assert.equal(
    describeFilter(filter),
    "runs that are failed or paused, of workflow order, with label team=a, created since 24h ago",
  );
});

test("an address with nonsense shows more, it does not break", () => {
  const filter = filterFromQuery(new URLSearchParams("status=odd&since=then&order=up&label=x&tab=1"));
  assert.ok(sameFilter(filter, EVERY_RUN));
});

function randomFilter(random: Random): RunFilter {
  const word = () => random.text('ab:"\\ é=', 5) || "x";
  const maybe = <T>(value: T, none: T) => (random.chance(0.3) ? value : none);
  const time = () => maybe(random.pick(["24h", "5m 30s", "2026-11-16T14:00:00Z"]), "");
  const flag = () => maybe<boolean | null>(random.chance(0.5), null);
  return {
    status: maybe([...new Set([random.pick(RUN_STATUSES), random.pick(RUN_STATUSES)])], []),
    workflow: maybe([word()], []),
    label: maybe([`team=${word()}`, `x=${word()}`], []),
    since: time(),
    until: time(),
    ended_since: time(),
    ended_until: time(),
    id: maybe(word(), ""),
    id_prefix: maybe(word(), ""),
    version: maybe(word(), ""),
    parent: maybe(word(), ""),
    schedule: maybe(word(), ""),
    key: maybe(word(), ""),
    worker: maybe(word(), ""),
    problem: flag(),
    failing: flag(),
    waiting: flag(),
    order: maybe<"created" | "ended" | null>("ended", null),
  };
}
