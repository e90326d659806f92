import assert from "node:assert/strict";
import { test } from "node:test";
import { lastWord, suggestionsFor } from "../src/model/filter-suggestions";
import { parseFilter } from "../src/model/filters";
import { areaPath } from "../src/model/intervals";

const words = (text: string, names: readonly string[] = []) => suggestionsFor(text, names).map((each) => each.word);

test("the word that is typed is completed, with what it means in the box", () => {
  assert.deepEqual(words("status:fai"), ["status:failed"]);
  assert.deepEqual(words("label:a=b sta"), ["status:"]);
  assert.deepEqual(words("fail"), ["status:failed"]);
  assert.deepEqual(words("status:failed,pa"), ["status:failed,paused"]);
  assert.deepEqual(words("is:w"), ["is:waiting"]);
  assert.deepEqual(words("workflow:or", ["order", "Orphan", "import"]), ["workflow:order", "workflow:Orphan"]);
  assert.deepEqual(words('workflow:"my', ["my type"]), ['workflow:"my type"']);
  for (const [text, names] of [["status:c", []], ["workflow:m", ["my type"]], ["ended_since:", []]] as const) {
    for (const word of words(text, names)) assert.deepEqual(parseFilter(word).errors, [], word);
  }
});

test("nothing is suggested for a word that is complete, or that nothing begins with", () => {
  assert.deepEqual(words(""), []);
  assert.deepEqual(words("status:failed"), []);
  assert.deepEqual(words("status:failed "), []);
  assert.deepEqual(words("0192ab"), []);
  assert.deepEqual(lastWord('a "b c" workflow:"my ty'), ['a "b c" ', 'workflow:"my ty']);
});

test("several words without a key are one error", () => {
  const { errors } = parseFilter("no price for item");
  assert.deepEqual(
    errors.map((error) => error.word),
    ["no price for item"],
  );
});

test("few failures are a small part of the area, but never invisible", () => {
  const tops = (path: string) => [...path.matchAll(/V([\d.]+)H/g)].map((each) => Number(each[1]));
  assert.deepEqual(tops(areaPath(Uint32Array.of(0, 1, 20, 1000), 1000, 8)), [100, 92, 92, 0]);
  assert.deepEqual(tops(areaPath(Uint32Array.of(500, 250), 1000, 8)), [50, 75]);
});
