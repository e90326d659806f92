import assert from "node:assert/strict";
import { test, mock } from "node:test";
import { Connecting } from "../src/api/connection";

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

function server(): { up: boolean; asked: number; connecting: Connecting } {
  const state = {
    up: true,
    asked: 0,
    connecting: new Connecting(async () => {
      state.asked += 1;
      if (!state.up) throw new Error("away");
    }),
  };
  return state;
}

test("one request that was cut off is not a server that is lost", async () => {
  const there = server();
  there.connecting.failed();
  await settled();
  assert.equal(there.asked, 1);
  assert.equal(there.connecting.state.value.state, "asking");
});

test("a server that is away is lost, tried again at growing intervals, and found again", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  try {
    const away = server();
    let restored = 0;
    away.connecting.restored(() => (restored += 1));
    away.up = false;
    away.connecting.failed();
    await settled();
    assert.equal(away.connecting.state.value.state, "lost");
    assert.equal(away.connecting.state.value.retryAt, 1_001_000);
    for (const wait of [1000, 2000, 4000]) {
      mock.timers.tick(wait);
      await settled();
      assert.equal(away.connecting.state.value.state, "lost");
    }
    assert.equal(away.asked, 4);
    away.up = true;
    away.connecting.retryNow();
    await settled();
    assert.equal(away.connecting.state.value.state, "asking");
    assert.equal(restored, 1);
  } finally {
    mock.timers.reset();
  }
});

test("a page that hears nothing asks whether the server is there; one with a stream does not", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  try {
    const there = server();
    there.connecting.tick();
    assert.equal(there.asked, 0, "it has just been opened");
    mock.timers.tick(2500);
    there.connecting.tick();
    await settled();
    assert.equal(there.asked, 1);
    there.connecting.streamOpened();
    mock.timers.tick(60_000);
    there.connecting.tick();
    assert.equal(there.asked, 1);
    assert.equal(there.connecting.state.value.state, "live");
  } finally {
    mock.timers.reset();
  }
});
