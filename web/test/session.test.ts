import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionView } from "../src/api/types";
import { allows, returnPath } from "../src/state/session";

function key(scopes: SessionView["scopes"], namespace = "*"): SessionView {
  return { auth: "keys", key_id: "k1", name: "ci", namespace, scopes, expires_at: null };
}

test("nothing is allowed before it is known who asks", () => {
  assert.equal(allows(null, "read", "default"), false);
});

test("without keys everything is allowed", () => {
  assert.equal(allows({ ...key([]), auth: "off" }, "admin", "any"), true);
});

test("scopes include others as they do on the server", () => {
  assert.equal(allows(key(["client"]), "read", "default"), true);
  assert.equal(allows(key(["client"]), "admin", "default"), false);
  assert.equal(allows(key(["worker"]), "read", "default"), false);
  assert.equal(allows(key(["admin"]), "worker", "default"), true);
});

test("a key of one namespace is good for no other", () => {
  assert.equal(allows(key(["admin"], "eu"), "read", "eu"), true);
  assert.equal(allows(key(["admin"], "eu"), "read", "default"), false);
});

test("after a login one goes on to a page of this dashboard only", () => {
  assert.equal(returnPath("/runs/01K9?tab=history"), "/runs/01K9?tab=history");
  for (const elsewhere of [
    null,
    "",
    "https://example.com/",
    "//example.com",
    "/\\example.com",
    "javascript:alert(1)",
  ]) {
    assert.equal(returnPath(elsewhere), "/runs");
  }
  assert.equal(returnPath("/login?next=/login"), "/runs", "not to the login again");
});
