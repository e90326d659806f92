import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkSyntax,
  findInJson,
  isJsonError,
  joinEnvelope,
  type JsonNode,
  nodeText,
  parseJsonText,
  pathOf,
  pretty,
  RawJson,
  scalarText,
  splitEnvelope,
  walk,
} from "../src/model/json-text";
import { forSeeds, type Random } from "./random";

const ODD = '{"id": 1970670598291982290, "x": 0.2345678901234568, "a": 1, "a": 2}';

function parsed(text: string): JsonNode {
  const node = parseJsonText(text);
  assert.ok(!isJsonError(node));
  return node;
}

test("digits, key order and duplicate keys are as they are", () => {
  const node = parsed(ODD);
  assert.deepEqual(
    node.children?.map((child) => [child.key, nodeText(child, ODD)]),
    [
      ["id", "1970670598291982290"],
      ["x", "0.2345678901234568"],
      ["a", "1"],
      ["a", "2"],
    ],
  );
  assert.equal(nodeText(node, ODD), ODD);
});

test("it takes what JSON.parse takes, and nothing else", () => {
  const scalars = ["", " ", "01", "1.", "+1", ".5", "tru", "nul", '"\n"', '"\\x"'];
  const nested = ["{", "[1,]", '{"a"}', '{"a":}', "{'a':1}", "[1 2]", '{"a":1,}', "[", "]", '{"a":1 "b":2}'];
  for (const text of [...scalars, ...nested, "1 2", '"\\ud8"', "NaN"]) {
    assert.throws(() => JSON.parse(text) as unknown);
    assert.ok(isJsonError(parseJsonText(text)), text);
    assert.ok(checkSyntax(text), text);
  }
  forSeeds(400, (random) => {
    const text = randomJson(random, 4);
    const rest = random.pick(["", "}", "]", ",", "1"]);
    const cut = random.chance(0.5) ? text : text.slice(0, random.whole(0, text.length)) + rest;
    let fine = true;
    try {
      JSON.parse(cut);
    } catch {
      fine = false;
    }
    assert.equal(!isJsonError(parseJsonText(cut)), fine, cut);
    if (fine) assert.deepEqual(JSON.parse(pretty(cut)), JSON.parse(cut));
  });
});

test("pretty printing keeps every token", () => {
  const tokens = (text: string) => text.match(/"(?:[^"\\]|\\.)*"|[^\s"]/g)?.join("");
  forSeeds(200, (random) => {
    const text = randomJson(random, 4);
    assert.equal(tokens(pretty(text)), tokens(text));
  });
  assert.equal(pretty('{"a":[1,{}],"a":[]}'), '{\n  "a": [\n    1,\n    {}\n  ],\n  "a": []\n}');
  assert.equal(pretty("{oops"), "{oops");
});

test("a value that is ten thousand levels deep is read", () => {
  const deep = "[".repeat(10_000) + "]".repeat(10_000);
  assert.ok(!isJsonError(parseJsonText(deep)));
  const answer = splitEnvelope(`{"input":${deep}}`, new Set(["input"])) as { input: RawJson };
  assert.equal(answer.input.text, deep);
});

test("a string of four million characters is read", () => {
  const long = JSON.stringify("x\\n".repeat(2_000_000));
  assert.ok(!isJsonError(parseJsonText(long)));
  assert.equal((splitEnvelope(`{"input":${long}}`, new Set(["input"])) as { input: RawJson }).input.text, long);
});

test("errors name line and column", () => {
  assert.equal(checkSyntax('{\n  "a": }'), "line 2, column 8: expected a value, not }");
  assert.equal(checkSyntax("[1"), "line 1, column 3: expected , or ], but the text ends");
  assert.equal(checkSyntax(ODD), null);
});

test("paths and finds", () => {
  const text = '{"order":{"items":[1,{"unit price":"Nine"}]}}';
  const all = [...walk(parsed(text))];
  const last = all.at(-1) as JsonNode;
  assert.equal(pathOf(last), 'order.items[1]["unit price"]');
  assert.equal(scalarText(last, text), "Nine");
  assert.deepEqual(findInJson(parsed(text), text, "nine").map(pathOf), [pathOf(last)]);
  assert.equal(findInJson(parsed(text), text, "UNIT").length, 1);
  assert.equal(findInJson(parsed(text), text, "").length, 0);
});

test("an envelope keeps the named values as text and parses the rest", () => {
  const text = `{"run_id":"r1", "labels": {"input":"mine"}, "input": ${ODD} , "steps":[{"output":[1, 2e5 ],"n":2}]}`;
  const answer = splitEnvelope(text, new Set(["input", "output"]));
  assert.deepEqual(answer, {
    run_id: "r1",
    labels: { input: "mine" },
    input: new RawJson(ODD),
    steps: [{ output: new RawJson("[1, 2e5 ]"), n: 2 }],
  });
});

test("without named fields an envelope is what JSON.parse makes of it, and joins to what JSON.stringify writes", () => {
  forSeeds(300, (random) => {
    const text = randomJson(random, 4);
    assert.deepEqual(splitEnvelope(text, new Set()), JSON.parse(text));
    assert.equal(joinEnvelope(JSON.parse(text)), JSON.stringify(JSON.parse(text)));
  });
  assert.throws(() => splitEnvelope('{"a":1', new Set()), SyntaxError);
  assert.throws(() => splitEnvelope('{"a":{"b"', new Set(["a"])), SyntaxError);
});

test("a raw value is sent to the byte", () => {
  const body = { workflow: "x", input: new RawJson(ODD), no: undefined };
  assert.equal(joinEnvelope(body), `{"workflow":"x","input":${ODD}}`);
});

function randomJson(random: Random, depth: number): string {
  const space = () => random.pick(["", "", " ", "\n\t"]);
  const kind = random.whole(0, depth > 0 ? 6 : 4);
  if (kind === 0) return random.pick(["null", "true", "false"]);
  if (kind === 1) return random.pick(["0", "-0", "1e400", "123456789012345678901", "-0.10", "5E-7"]);
  if (kind < 5) return JSON.stringify(random.text('ab"\\/\n\té{}[],:', 6));
  const items = Array.from({ length: random.whole(0, 4) }, () => {
    const value = `${space()}${randomJson(random, depth - 1)}${space()}`;
    return kind === 5 ? value : `${space()}${JSON.stringify(random.text("abc\\", 2))}${space()}:${value}`;
  });
  return kind === 5 ? `[${items.join(",")}]` : `{${items.join(",") || space()}}`;
}
