import assert from "node:assert/strict";
import { test } from "node:test";
import { addressFrom, patched, readRoute } from "../src/state/route";

test("a name with a slash stays one segment", () => {
  const route = readRoute("/", "/workflows/a%2Fb/start", "");
  assert.deepEqual(route.segments, ["workflows", "a/b", "start"]);
});

test("the base path is no part of the route", () => {
  const route = readRoute("/tools/kagzi/", "/tools/kagzi/runs/01K9", "?tab=history");
  assert.equal(route.path, "/runs/01K9");
  assert.equal(route.query.get("tab"), "history");
});

test("a segment that is not percent-encoded properly is shown as it is", () => {
  assert.deepEqual(readRoute("/", "/runs/%E0%A4%A", "").segments, ["runs", "%E0%A4%A"]);
});

test("addresses stay below the base path", () => {
  assert.equal(addressFrom("/tools/kagzi/", "/runs", [["status", "failed"]]), "/tools/kagzi/runs?status=failed");
  assert.equal(addressFrom("/", "/runs", []), "/runs");
});

test("a patch changes what it names and leaves the rest, also what nobody knows", () => {
  const query = new URLSearchParams("namespace=eu&status=failed&status=paused&later=1");
  const after = patched(query, { status: ["running"], tab: "why", namespace: null });
  assert.equal(after.toString(), "later=1&status=running&tab=why");
  assert.equal(query.get("namespace"), "eu", "the query that was given is not changed");
});
