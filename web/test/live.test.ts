import assert from "node:assert/strict";
import { test } from "node:test";
import { Tabs } from "../src/api/tabs";

/** Tabs of one browser: what one says, all others hear, in order. */
class Browser {
  private readonly channels: { onmessage: ((event: MessageEvent) => unknown) | null }[] = [];
  private readonly waiting: (() => void)[] = [];
  private time = 1000;
  readonly tabs: Tabs[] = [];
  readonly hidden = new Set<string>();

  open(id: string): Tabs {
    const channel = {
      onmessage: null as ((event: MessageEvent) => unknown) | null,
      postMessage: (message: unknown): void => {
        const others = this.channels.filter((each) => each !== channel);
        this.waiting.push(() => others.forEach((each) => each.onmessage?.({ data: message } as MessageEvent)));
      },
      close: (): void => {},
    };
    this.channels.push(channel);
    const tab = new Tabs(
      { channel, now: () => this.time, visible: () => !this.hidden.has(id), later: (act) => this.waiting.push(act) },
      id,
    );
    this.tabs.push(tab);
    tab.take();
    return tab;
  }

  settle(): string[] {
    for (let turn = 0; this.waiting.length > 0; turn += 1) {
      assert.ok(turn < 1000, "the tabs go on arguing");
      this.waiting.shift()?.();
    }
    this.time += 1;
    return this.tabs.filter((tab) => tab.holds).map((tab) => tab.id);
  }
}

test("of eight tabs one holds the stream: the one that was opened last", () => {
  const browser = new Browser();
  for (let number = 1; number <= 8; number += 1) {
    browser.open(`tab${number}`);
    assert.deepEqual(browser.settle(), [`tab${number}`]);
  }
});

test("the tab that was focused last takes it", () => {
  const browser = new Browser();
  const first = browser.open("first");
  browser.settle();
  browser.open("second");
  browser.settle();
  first.take();
  assert.deepEqual(browser.settle(), ["first"]);
});

test("of all that take it at the very same moment one is left", () => {
  const browser = new Browser();
  for (const id of ["c", "a", "b"]) browser.open(id);
  assert.equal(browser.settle().length, 1);
});

test("a tab that goes hands it to one that is visible", () => {
  const browser = new Browser();
  browser.open("shown");
  browser.settle();
  browser.open("hidden");
  browser.settle();
  const last = browser.open("last");
  browser.settle();
  browser.hidden.add("hidden");
  browser.hidden.add("last");
  last.leave();
  assert.deepEqual(browser.settle(), ["shown"]);
});

test("hidden tabs do not take it", () => {
  const browser = new Browser();
  browser.hidden.add("hidden");
  browser.open("hidden");
  assert.deepEqual(browser.settle(), []);
});

test("a tab hears of it when it gets or loses the stream, and of nothing else", () => {
  const browser = new Browser();
  const first = browser.open("first");
  browser.settle();
  const heard: boolean[] = [];
  first.changed(() => heard.push(first.holds));
  browser.open("second");
  browser.settle();
  browser.open("third");
  browser.settle();
  first.take();
  browser.settle();
  assert.deepEqual(heard, [false, true]);
});
