import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseJsonText } from "../src/model/json-text";
import {
  ABSENT,
  entryOf,
  type Field,
  fieldsOf,
  type FormValue,
  formToText,
  initialForm,
  initialText,
  textToForm,
  validate,
  validateForm,
  withEntry,
  withItem,
} from "../src/model/schema-form";
import { forSeeds, type Random } from "./random";

const SCHEMAS = JSON.parse(readFileSync("test/recordings/schemas.json", "utf8")) as Record<string, unknown>;
const order = fieldsOf(JSON.stringify(SCHEMAS["order"]));
const plain = fieldsOf(JSON.stringify(SCHEMAS["plain"]));

function property(field: Field, name: string): Field {
  return field.properties.find((each) => each.name === name)?.field as Field;
}

const tokens = (text: string) => text.match(/"(?:[^"\\]|\\.)*"|[^\s"]/g)?.join("");

test("a pydantic model is a form of its fields", () => {
  assert.deepEqual(
    order.properties.map((each) => [each.name, each.field.kind, each.required, each.field.nullable]),
    [
      ["id", "integer", true, false],
      ["customer", "string", true, false],
      ["speed", "choice", false, false],
      ["due", "string", true, false],
      ["at", "string", false, true],
      ["address", "object", true, false],
      ["payment", "union", true, false],
      ["items", "array", true, false],
      ["note", "string", false, true],
      ["tags", "map", false, false],
      ["gift", "boolean", false, false],
      ["anything", "json", false, false],
    ],
  );
  assert.equal(order.description, "An order to process.");
  assert.equal(property(order, "customer").description, "Who ordered it");
  assert.equal(property(order, "address").description, "Where it goes.");
  assert.equal(property(order, "at").format, "date-time");
  assert.deepEqual(property(order, "payment").variants.map((each) => each.label), ["Card", "Invoice"]);
  assert.deepEqual(property(order, "speed").choices.map((each) => each.text), ['"slow"', '"fast"']);
});

test("a form begins with defaults and the least that must be there", () => {
  const text = initialText(order);
  assert.deepEqual(JSON.parse(text), {
    customer: "",
    speed: "slow",
    due: "",
    address: { street: "", zip: "" },
    payment: { kind: "card", number: "" },
    items: [],
    tags: {},
    gift: false,
  });
  assert.deepEqual(JSON.parse(initialText(plain)), { b: "x", c: [] });
  assert.equal(initialText(fieldsOf('{"type": "integer", "default": 1970670598291982290}')), "1970670598291982290");
});

test("errors are at the field", () => {
  const errors = (change: (form: FormValue) => FormValue) =>
    Object.fromEntries(validateForm(order, change(initialForm(order))).map((each) => [each.path, each.message]));
  const first = errors((form) => form);
  assert.deepEqual(Object.keys(first), ["id", "due", "address.street", "items"]);
  assert.equal(first["id"], "is required");
  assert.equal(first["due"], "is required");
  assert.ok(validateForm(order, initialForm(order)).every((each) => each.missing));
  assert.equal(first["items"], "needs at least 1");
  const item = initialForm(property(order, "items").items);
  const bad = errors((form) => {
    const items = withItem(entryOf(form, "items"), 0, withEntry(item, "count", { kind: "text", text: "0" }));
    return withEntry(withEntry(form, "id", { kind: "text", text: "12x" }), "items", items);
  });
  assert.equal(bad["id"], "must be a whole number");
  const typed = formToText(order, withEntry(initialForm(order), "id", { kind: "text", text: "12x" }));
  assert.ok(typed.includes('{\n  "id": 12x,\n'));
  assert.equal(bad["items[0].count"], "must be at least 1");
  assert.equal(bad["items[0].price"], "is required");
  assert.deepEqual(validate(order, "{"), [
    { path: "", message: "line 1, column 2: expected a key in double quotes, but the text ends" },
  ]);
  const text = `{"id": "x", "customer": null, "due": "2026-02-30", "speed": "warp", "address": 5,
    "payment": {"kind": "card"}, "items": []}`;
  assert.deepEqual(
    validate(order, text).map((each) => each.path),
    ["id", "customer", "speed", "due", "address", "payment.number", "items"],
  );
});

test("numbers travel as they are typed", () => {
  const typed: FormValue = { kind: "text", text: "1970670598291982290" };
  const text = formToText(order, withEntry(initialForm(order), "id", typed));
  assert.ok(text.includes('"id": 1970670598291982290'));
  assert.deepEqual(entryOf(textToForm(order, text), "id"), typed);
});

test("form and JSON share one state: nothing of a text is lost, whatever it says", () => {
  forSeeds(400, (random) => {
    const text = randomValue(random, random.chance(0.7) ? order : plain, 4);
    const field = random.chance(0.8) ? order : plain;
    assert.equal(tokens(formToText(field, textToForm(field, text))), tokens(text), text);
  });
  const odd = '{"id": 1, "id": 2, "unknown": [1.50, {"a": null}], "customer": "ü\\u0041"}';
  assert.equal(tokens(formToText(order, textToForm(order, odd))), tokens(odd.replace("\\u0041", "A")));
});

test("a union is told by its tag, else by its shape", () => {
  const payment = property(order, "payment");
  const index = (text: string) => {
    const form = textToForm(payment, text);
    return form.kind === "union" ? form.index : -1;
  };
  assert.equal(index('{"kind": "invoice", "days": 3}'), 1);
  assert.equal(index('{"number": "1"}'), 0);
  assert.equal(index("5"), -1);
  const several = fieldsOf(JSON.stringify(SCHEMAS["several"]));
  assert.equal(several.nullable, true);
  assert.deepEqual(textToForm(several, '"x"'), { kind: "union", index: 1, value: { kind: "text", text: "x" } });
  assert.deepEqual(textToForm(several, "null"), { kind: "null" });
});

test("optional fields are left out and put back", () => {
  const form = withEntry(initialForm(order), "note", { kind: "text", text: "hi" });
  assert.ok(formToText(order, form).includes('"note": "hi"'));
  assert.ok(!formToText(order, withEntry(form, "note", ABSENT)).includes("note"));
  assert.ok(formToText(order, withEntry(form, "note", { kind: "null" })).includes('"note": null'));
});

test("a schema that contains itself, or is nonsense, makes a form all the same", () => {
  const d = property(plain, "d");
  assert.equal(d.kind, "object");
  assert.equal(property(property(d, "d"), "d").nullable, true);
  for (const schema of [
    "",
    "5",
    "{}",
    "true",
    '{"$ref": "#"}',
    '{"$ref": "#/nowhere"}',
    '{"anyOf": [{"$ref": "#"}]}',
    '{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}',
    '{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}',
    '{"allOf": [{"$ref": "#"}, {"type": "string"}]}',
    '{"type": ["string", "integer", "null"]}',
    '{"enum": []}',
  ]) {
    const field = fieldsOf(schema);
    const text = initialText(field);
    assert.ok(parseJsonText(text), schema);
    for (const value of ["null", "{}", '{"a": {"a": 1}}', "[1]", '"x"']) {
      assert.equal(tokens(formToText(field, textToForm(field, value))), tokens(value), `${schema} ${value}`);
      validate(field, value);
    }
  }
});

/** Mostly of the shape that the field asks for; its numbers have digits that JavaScript cannot hold. */
function randomValue(random: Random, field: Field, depth: number): string {
  if (depth <= 0 || random.chance(0.1)) return random.pick(["null", "7", '"x"', "{}", "[]", "12345678901234567890"]);
  switch (field.kind) {
    case "object": {
      const shown = field.properties.filter((each) => each.required || random.chance(0.5));
      const members = shown.map((each) => `"${each.name}":${randomValue(random, each.field, depth - 1)}`);
      if (random.chance(0.2)) members.push(`"extra":${random.pick(["1", "[2]", "{}"])}`);
      return `{${members.join(random.pick([",", ", "]))}}`;
    }
    case "map":
      return `{"k": ${randomValue(random, field.items, depth - 1)}}`;
    case "array": {
      const items = Array.from({ length: random.whole(0, 3) }, () => randomValue(random, field.items, depth - 1));
      return `[${items.join(",")}]`;
    }
    case "union":
      return randomValue(random, random.pick(field.variants), depth);
    case "choice":
      return random.pick(field.choices).text;
    case "integer":
      return random.pick(["1", "-5", "1970670598291982290"]);
    case "number":
      return random.pick(["0.2345678901234568", "1.50", "1e400"]);
    case "boolean":
      return random.pick(["true", "false"]);
    default:
      return JSON.stringify(random.text('ab"\\é\n', 5));
  }
}

test("a pattern of a schema cannot keep the page busy", () => {
  const hostile = { type: "string", pattern: "^(a+)+$", default: `${"a".repeat(64)}!` };
  const field = fieldsOf(JSON.stringify({ type: "object", properties: { a: hostile, b: { type: "array", items: hostile } } }));
  const began = performance.now();
  assert.deepEqual(validateForm(field, initialForm(field)), []);
  assert.deepEqual(validate(field, JSON.stringify({ a: hostile.default, b: [hostile.default, "!"] })), []);
  assert.ok(performance.now() - began < 1000);
});
