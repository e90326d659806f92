import assert from "node:assert/strict";
import { test } from "node:test";
import type { InboxRow, RunView, SignalWaitView } from "../src/api/types";
import { twoButtonsOf } from "../src/pages/inbox/buttons";
import { fieldsOf } from "../src/model/schema-form";
import { InboxStore } from "../src/state/inbox-store";

function row(id: string, since: string, signal = "approve"): InboxRow {
  const wait: SignalWaitView = { step_id: signal, signal, since, expires_at: null, schema: null };
  return { run: { run_id: id, workflow_id: id } as RunView, waits: [wait] };
}

const shown = (store: InboxStore): string[] => store.cards.value.map((card) => `${card.key} ${card.state.value}`);
const empty = { rows: [], next: null, prev: null, count: null, capped: false };

test("who waits the longest is first, and new ones come last", () => {
  const store = new InboxStore(async () => empty);
  store.take([row("b", "2"), row("a", "1")], false);
  store.take([row("c", "0"), row("b", "2"), row("a", "1")], false);
  assert.deepEqual(shown(store), ["a approve open", "b approve open", "c approve open"]);
});

test("what was answered elsewhere goes, but not from under somebody's hands", () => {
  const store = new InboxStore(async () => empty);
  store.take([row("b", "2"), row("a", "1")], false);
  store.hold("pointer", true);
  store.take([row("b", "2")], false);
  assert.deepEqual(shown(store), ["a approve gone", "b approve open"]);
  store.hold("pointer", false);
  assert.deepEqual(shown(store), ["b approve open"]);
  store.take([], false);
  assert.deepEqual(shown(store), []);
});

test("one boolean, alone or in an object, is two buttons", () => {
  const of = (schema: unknown, signal: string) => twoButtonsOf(fieldsOf(JSON.stringify(schema)), signal);
  assert.equal(of({ type: "boolean" }, "approve")?.yes, "true");
  const approval = { type: "object", properties: { approved: { type: "boolean" } }, required: ["approved"] };
  const words = { yes: '{"approved": true}', no: '{"approved": false}', yesWord: "Approve", noWord: "Decline", field: null };
  assert.deepEqual(of(approval, "decision"), words);
  assert.deepEqual(of({ $ref: "#/$defs/Approval", $defs: { Approval: approval } }, "decision"), words);
  assert.equal(of({ type: "boolean" }, "is-fraud")?.yesWord, "Yes");
  assert.equal(of({ type: "object", properties: { a: { type: "boolean" }, b: { type: "string" } } }, "x"), null);
  assert.equal(of({}, "x"), null);
  const reasoned = { type: "object", properties: { approved: { type: "boolean" }, note: { type: "string" } } };
  const beside = { yes: "true", no: "false", yesWord: "Approve", noWord: "Decline", field: "approved" };
  assert.deepEqual(of(reasoned, "x"), beside);
  const two = { ...reasoned.properties, urgent: { type: "boolean" } };
  assert.equal(of({ type: "object", properties: two }, "x"), null);
});
