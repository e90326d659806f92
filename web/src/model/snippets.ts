// The page's actions as a command, a request and Python code, for copying.
import { asPythonValue, dict, pythonText } from "./python-text";

export { asPytest, asPythonValue, type RecordedRun, type RecordedStep } from "./python-text";

/** Where the page was loaded from, and its namespace. `keys`: the server requires a key. */
export interface SnippetPlace {
  /** `https://host/base`, without a trailing slash. */
  readonly origin: string;
  readonly namespace: string;
  readonly keys: boolean;
}

export interface StartSnippet {
  readonly does: "start";
  readonly workflow: string;
  /** JSON text, as typed; empty: no input. */
  readonly input: string;
  readonly workflowId?: string;
  readonly version?: string;
  readonly labels?: readonly (readonly [string, string])[];
  readonly priority?: number;
  readonly delay?: string;
  readonly concurrencyKey?: string;
}

export interface SignalSnippet {
  readonly does: "signal";
  readonly run: string;
  readonly name: string;
  readonly payload: string;
}

export interface ForkSnippet {
  readonly does: "fork";
  readonly run: string;
  readonly fromStep?: string;
  readonly outputs?: readonly (readonly [string, string])[];
  readonly version?: string;
  readonly workflowId?: string;
}

/** `cancel`, `terminate`, `pause`, `resume`, `retry`, `wake`: actions with a run and at most one more word. */
export interface VerbSnippet {
  readonly does: "cancel" | "terminate" | "pause" | "resume" | "retry" | "wake";
  readonly run: string;
  readonly reason?: string;
  readonly fromStep?: string;
  readonly step?: string;
}

export type Snippet = StartSnippet | SignalSnippet | ForkSnippet | VerbSnippet;

/** One word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

function command(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

// --- kagzi -----------------------------------------------------------------------------------------------------------

export function asCli(what: Snippet, place?: SnippetPlace): string {
  const value = (what.does === "start" ? what.input : what.does === "signal" ? what.payload : "").trim();
  // A value that begins with a dash would be parsed as an option.
  const last = value.startsWith("-");
  const words = ["kagzi", what.does, ...cliWords(what, value && !last ? [value] : [])];
  if (place && place.namespace !== "default") words.push("--namespace", place.namespace);
  return command(last ? [...words, "--", value] : words);
}

function cliWords(what: Snippet, value: readonly string[]): string[] {
  switch (what.does) {
    case "start":
      return [
        what.workflow,
        ...value,
        ...option("--id", what.workflowId),
        ...option("--version", what.version),
        ...(what.labels ?? []).flatMap(([key, value]) => ["--label", `${key}=${value}`]),
        ...option("--priority", what.priority ? String(what.priority) : ""),
        ...option("--delay", what.delay),
        ...option("--concurrency-key", what.concurrencyKey),
      ];
    case "signal":
      return [what.run, what.name, ...value];
    case "fork":
      return [
        what.run,
        ...option("--from-step", what.fromStep),
        ...(what.outputs ?? []).flatMap(([step, text]) => ["--output", `${step}=${text}`]),
        ...option("--version", what.version),
        ...option("--id", what.workflowId),
      ];
    default:
      return [
        what.run,
        ...option("--reason", what.reason),
        ...option("--from-step", what.fromStep),
        ...(what.step ? [what.step] : []),
      ];
  }
}

function option(name: string, value: string | undefined): string[] {
  return value ? [name, value] : [];
}

// --- curl ------------------------------------------------------------------------------------------------------------

export function asCurl(what: Snippet, place: SnippetPlace): string {
  const [path, body] = request(what);
  const query = new URLSearchParams();
  if (what.does === "wake" && what.step) query.set("id", what.step);
  if (place.namespace !== "default") query.set("namespace", place.namespace);
  const search = query.size ? `?${query.toString()}` : "";
  const lines = [
    `curl -X POST ${shellWord(`${place.origin}/api/v1${path}${search}`)}`,
    "-H 'Content-Type: application/json'",
    ...(place.keys ? ['-H "Authorization: Bearer $KAGZI_API_KEY"'] : []),
    `-d ${shellWord(body)}`,
  ];
  return lines.join(" \\\n  ");
}

function request(what: Snippet): [string, string] {
  if (what.does === "start") return ["/runs", startBody(what)];
  const run = `/runs/${encodeURIComponent(what.run)}`;
  switch (what.does) {
    case "signal":
      return [`${run}/signal`, members([text("name", what.name), raw("payload", what.payload)])];
    case "fork":
      return [
        `${run}/fork`,
        members([
          text("from_step", what.fromStep),
          what.outputs?.length ? `"outputs": ${members(what.outputs.map(([step, json]) => raw(step, json)))}` : "",
          text("version", what.version),
          text("workflow_id", what.workflowId),
        ]),
      ];
    case "wake":
      return [`${run}/step/wake`, "{}"];
    default:
      return [`${run}/${what.does}`, members([text("reason", what.reason), text("from_step", what.fromStep)])];
  }
}

function startBody(what: StartSnippet): string {
  const labels = (what.labels ?? []).map(([key, value]) => text(key, value));
  return members([
    text("workflow", what.workflow),
    raw("input", what.input),
    text("workflow_id", what.workflowId),
    text("version", what.version),
    labels.length ? `"labels": ${members(labels)}` : "",
    what.priority ? `"priority": ${what.priority}` : "",
    text("delay", what.delay),
    text("concurrency_key", what.concurrencyKey),
  ]);
}

function members(parts: readonly string[]): string {
  return `{${parts.filter(Boolean).join(", ")}}`;
}

function text(key: string, value: string | undefined): string {
  return value ? `${JSON.stringify(key)}: ${JSON.stringify(value)}` : "";
}

function raw(key: string, json: string): string {
  return json.trim() ? `${JSON.stringify(key)}: ${json.trim()}` : "";
}

// --- Python ----------------------------------------------------------------------------------------------------------

export function asPython(what: Snippet, place?: SnippetPlace): string {
  const namespace = place && place.namespace !== "default" ? `namespace=${pythonText(place.namespace)}` : "";
  return [
    "from kagzi import Kagzi",
    "",
    `async with Kagzi.connect(${namespace}) as client:`,
    `    ${pythonCall(what).replace(/\n/g, "\n    ")}`,
  ].join("\n");
}

function pythonCall(what: Snippet): string {
  switch (what.does) {
    case "start":
      return `run = await client.start(${args([
        pythonText(what.workflow),
        what.input.trim() ? asPythonValue(what.input) : "None",
        keyword("id", what.workflowId),
        keyword("version", what.version),
        what.labels?.length ? `labels=${dict(what.labels.map(([key, value]) => [key, pythonText(value)]))}` : "",
        what.priority ? `priority=${what.priority}` : "",
        keyword("delay", what.delay),
        keyword("concurrency_key", what.concurrencyKey),
      ])})`;
    case "signal":
      return `await client.signal(${args([
        pythonText(what.run),
        pythonText(what.name),
        what.payload.trim() ? asPythonValue(what.payload) : "",
      ])})`;
    case "fork":
      return `run = await client.fork(${args([
        pythonText(what.run),
        keyword("from_step", what.fromStep),
        what.outputs?.length ? `outputs=${dict(what.outputs.map(([step, json]) => [step, asPythonValue(json)]))}` : "",
        keyword("version", what.version),
        keyword("workflow_id", what.workflowId),
      ])})`;
    default:
      return `await client.${what.does}(${args([
        pythonText(what.run),
        what.reason ? pythonText(what.reason) : "",
        what.step ? pythonText(what.step) : "",
        keyword("from_step", what.fromStep),
      ])})`;
  }
}

function args(parts: readonly string[]): string {
  return parts.filter(Boolean).join(", ");
}

function keyword(name: string, value: string | undefined): string {
  return value ? `${name}=${pythonText(value)}` : "";
}
