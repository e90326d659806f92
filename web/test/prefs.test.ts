import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_PREFS, readPrefs } from "../src/state/prefs";

test("what was stored is read again", () => {
  const stored = { ...DEFAULT_PREFS, theme: "dark", zone: "Europe/Berlin", singleKeys: false, mutedSignals: ["tick"] };
  assert.deepEqual(readPrefs(JSON.stringify(stored)), stored);
});

test("what cannot be used is as it is by default, and only that", () => {
  for (const text of [null, "", "not JSON", "null", "[]", "7"]) assert.deepEqual(readPrefs(text), DEFAULT_PREFS);
  const mixed = readPrefs('{"theme": "pink", "zone": "Mars/Olympus", "density": "compact", "inspector": -4}');
  assert.deepEqual(mixed, { ...DEFAULT_PREFS, density: "compact" });
});
