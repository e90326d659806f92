// OpenWorkflow: worker and load generator in one process.
//   node openworkflow_driver.mjs MODULES postgresql|sqlite PLACE
//
// Its result() looks every second; here the end of the function, which is in this process, says when to look, and then
// every 2 ms. That favours OpenWorkflow: nothing waits for a result longer than it takes.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { serve, UNSERVED } from "./load.mjs";

const [modules, store, place] = process.argv.slice(2);
const resolve = createRequire(pathToFileURL(`${modules}/package.json`)).resolve;
const load = (name) => import(pathToFileURL(resolve(name)));
const { OpenWorkflow } = await load("openworkflow");

async function connect() {
  if (store === "sqlite") {
    const { BackendSqlite } = await load("openworkflow/sqlite");
    return BackendSqlite.connect(place);
  }
  const { BackendPostgres } = await load("openworkflow/postgres");
  return BackendPostgres.connect(place);
}

const POLL_MS = 2;
const SLEEPING = 100;
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));
const backend = await connect();
const client = new OpenWorkflow({ backend });
const ended = new Map(); // by the token of a run: what to call when its function has returned
let serial = 0;

function define(name, body) {
  return client.defineWorkflow({ name }, async ({ input, step }) => {
    const result = await body(input.value, step);
    ended.get(input.token)?.();
    return result;
  });
}

const sequential = (work) => async (options, step) => {
  const steps = typeof options === "number" ? options : options.steps;
  let done = 0;
  for (let i = 0; i < steps; i++) {
    const result = await step.run({ name: `step-${i}` }, () => work(i, options));
    if (result.i === i) done += 1;
  }
  return done;
};

const flows = {
  sequence: define("sequence", sequential(async (i) => ({ i }))),
  timed: define("timed", async (steps, step) => {
    const began = performance.now();
    const done = await sequential(async (i) => ({ i }))(steps, step);
    return { done, ms: performance.now() - began };
  }),
  bodies: define("bodies", sequential(async (i, { body_ms }) => (await pause(body_ms), { i }))),
  payloads: define("payloads", sequential(async (i, { bytes }) => ({ i, data: "x".repeat(bytes) }))),
  fan_out: define("fan-out", async (steps, step) => {
    const all = Array.from({ length: steps }, (_, i) => step.run({ name: `step-${i}` }, async () => ({ i })));
    return (await Promise.all(all)).filter((result, i) => result.i === i).length;
  }),
  sleeper: define("sleeper", async (due, step) => {
    await step.sleep("sleep", `${Math.max(due - Date.now(), 1)}ms`);
    return Date.now();
  }),
};
const unserved = { name: UNSERVED };

let worker = null;
const waiting = new Map(); // by the id of a run: a promise of its function's end

async function start(flow, value) {
  if (flow === UNSERVED) return (await client.runWorkflow(unserved, { value })).workflowRun.id;
  const token = `${process.pid}-${serial++}`;
  const end = new Promise((call) => ended.set(token, call)).then(() => ended.delete(token));
  const handle = await flows[flow].run({ value, token });
  waiting.set(handle.workflowRun.id, end);
  return handle.workflowRun.id;
}

async function result(_flow, id) {
  await waiting.get(id);
  waiting.delete(id);
  for (;;) {
    const run = await backend.getWorkflowRun({ workflowRunId: id });
    if (run.status === "completed" || run.status === "succeeded") return run.output;
    if (run.status === "failed" || run.status === "canceled") throw new Error(`${run.status}: ${JSON.stringify(run.error)}`);
    await pause(POLL_MS);
  }
}

// A worker asks once for every free slot whenever it polls: more slots than runs would be held against it.
async function prepare(name, { in_flight = 1 }) {
  if (name === "stop_worker" || name === "starts") return;
  await worker?.stop();
  const wanted = { throughput: in_flight, timers: SLEEPING, sleepers: SLEEPING }[name] ?? 1;
  worker = client.newWorker({ concurrency: wanted });
  await worker.start();
}

await serve({
  prepare,
  start,
  result,
  run: async (flow, value) => result(flow, await start(flow, value)),
  stopWorker: () => worker?.stop(),
});
