// What the load generators in JavaScript share: the same commands, with the same arguments and answers, as
// src/kagzi/cli/bench/load.py has for Python.

import readline from "node:readline";
import { performance } from "node:perf_hooks";

const DAY_MS = 86_400_000;
const RATE_SAMPLE = 200;
const SCRAMBLE = 7;
export const UNSERVED = "bench-unserved";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const seconds = (began) => (performance.now() - began) / 1000;

function require(result, wanted) {
  if (result !== wanted) throw new Error(`a run returned ${JSON.stringify(result)} instead of ${wanted}`);
}

function late(resumed, due) {
  if (typeof resumed !== "number" || resumed < due) throw new Error(`a run that slept until ${due} went on at ${resumed}`);
  return resumed - due;
}

async function closedLoop(one, { in_flight, seconds: wanted }) {
  const began = performance.now();
  const done = [];
  const caller = async () => {
    while (seconds(began) < wanted) {
      const count = await one();
      done.push([seconds(began), count]);
    }
  };
  await Promise.all(Array.from({ length: in_flight }, caller));
  const took = seconds(began);
  const samples = new Array(Math.floor(took) + 1).fill(0);
  for (const [at, count] of done) samples[Math.min(Math.floor(at), samples.length - 1)] += count;
  return { runs: done.length, operations: done.reduce((sum, [, count]) => sum + count, 0), seconds: took, samples };
}

async function startMany(engine, count, due, inFlight, runs = null) {
  const began = performance.now();
  let number = 0;
  const caller = async () => {
    while (number < count) {
      number += 1;
      const run = await engine.start("sleeper", due);
      if (runs) runs.push(run);
    }
  };
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, caller));
  return count / seconds(began);
}

const commands = {
  async throughput(engine, { in_flight, seconds, steps = [10, 10], body_ms = 0, payload_bytes = 0 }) {
    const [low, high] = steps;
    let number = 0;
    const one = async () => {
      const count = low + ((number++ * SCRAMBLE) % (high - low + 1));
      let result;
      if (body_ms) result = await engine.run("bodies", { steps: count, body_ms });
      else if (payload_bytes) result = await engine.run("payloads", { steps: count, bytes: payload_bytes });
      else result = await engine.run("sequence", count);
      require(result, count);
      return count;
    };
    return closedLoop(one, { in_flight, seconds });
  },

  async starts(engine, { in_flight, seconds }) {
    const ids = new Set();
    const one = async () => {
      ids.add(await engine.start(UNSERVED, { i: 1 }));
      return 1;
    };
    const answer = await closedLoop(one, { in_flight, seconds });
    require(ids.size, answer.operations);
    return answer;
  },

  async latency(engine, { runs, steps, flow = "sequence", pause_seconds = 0.02 }) {
    const samples = [];
    const began = performance.now();
    for (let number = 0; number < runs; number++) {
      await pause(pause_seconds * 1000);
      const start = performance.now();
      const result = await engine.run(flow, steps);
      samples.push(flow === "timed" ? result.ms : performance.now() - start);
      require(flow === "timed" ? result.done : result, steps);
    }
    return { runs, operations: runs * steps, seconds: seconds(began), samples };
  },

  async timers(engine, { count, in_flight = 50, margin_seconds = 3 }) {
    const rate = await startMany(engine, Math.min(count, RATE_SAMPLE), Date.now() + DAY_MS, in_flight);
    const due = Date.now() + Math.floor((count / rate) * 1.5 * 1000 + margin_seconds * 1000);
    const runs = [];
    const started = await startMany(engine, count, due, in_flight, runs);
    if (Date.now() >= due) throw new Error(`the starts took too long (${Math.floor(started)}/s)`);
    const results = await Promise.all(runs.map((run) => engine.result("sleeper", run)));
    const samples = results.map((result) => late(result, due));
    const last = samples.reduce((most, sample) => Math.max(most, sample), 0);
    return { runs: count, operations: count, seconds: last / 1000, samples, starts_per_second: started };
  },

  async lone_timers(engine, { runs, delay_ms = 200 }) {
    const samples = [];
    const began = performance.now();
    for (let number = 0; number < runs; number++) {
      const due = Date.now() + delay_ms;
      samples.push(late(await engine.run("sleeper", due), due));
    }
    return { runs, operations: runs, seconds: seconds(began), samples };
  },

  async sleepers(engine, { count, in_flight = 50 }) {
    const began = performance.now();
    await startMany(engine, count, Date.now() + DAY_MS, in_flight);
    return { runs: count, operations: count, seconds: seconds(began), samples: [] };
  },

  async stop_worker(engine) {
    await engine.stopWorker();
    return {};
  },
};

export async function serve(engine) {
  process.stdout.write(JSON.stringify({ ready: true }) + "\n");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: name, ...request } = JSON.parse(line);
    let answer;
    try {
      await engine.prepare(name, request);
      answer = await commands[name](engine, request);
    } catch (error) {
      answer = { error: String(error?.stack ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  process.exit(0);
}
