// The text in the search box: `workflow:order status:failed,paused label:team=a since:24h is:failing 0192ab`.
import {
  EVERY_RUN,
  FLAG_FIELDS,
  type FlagField,
  isStatus,
  isTime,
  RUN_STATUSES,
  type RunFilter,
  splitLabel,
  TEXT_FIELDS,
  TIME_FIELDS,
} from "./filter-fields";

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] };

export interface FilterError {
  readonly word: string;
  readonly message: string;
}

export interface ParsedFilter {
  readonly filter: RunFilter;
  readonly errors: readonly FilterError[];
}

/** The keys of the search box, for its suggestions, with descriptions. */
export const FILTER_KEYS: readonly (readonly [string, string])[] = [
  ["workflow", "workflow type"],
  ["status", RUN_STATUSES.join(", ")],
  ["label", "key=value"],
  ["is", FLAG_FIELDS.join(", ")],
  ["not", FLAG_FIELDS.join(", ")],
  ["since", "created since: 24h, or a time"],
  ["until", "created before"],
  ["ended_since", "ended since"],
  ["ended_until", "ended before"],
  ["id", "workflow id"],
  ["version", "version"],
  ["parent", "run id of the parent"],
  ["schedule", "schedule id"],
  ["key", "concurrency key"],
  ["worker", "id of the worker that runs it"],
  ["order", "created, ended"],
];

const ONE_ID =
  "words without a key are the beginning of one run id or workflow id. To find errors by type, open Failures of a workflow";

const SAME_KEY: Record<string, string> = { type: "workflow", ended: "ended_since", id_prefix: "" };

/** Parses the text of the box. Words that cannot be parsed are in `errors`; the filter has the others. */
export function parseFilter(text: string): ParsedFilter {
  const filter = structuredClone(EVERY_RUN) as Mutable<RunFilter>;
  const errors: FilterError[] = [];
  const ids: string[] = [];
  for (const { key, value, word } of wordsOf(text)) {
    if ((SAME_KEY[key] ?? key) === "") ids.push(value);
    const message = take(filter, key, value);
    if (message) errors.push({ word, message });
  }
  if (ids.length > 1) errors.unshift({ word: ids.join(" "), message: ONE_ID });
  return { filter, errors };
}

interface Word {
  key: string;
  value: string;
  word: string;
}

/** At spaces, except in quotes. */
export function splitWords(text: string): string[] {
  return text.match(/(?:"(?:[^"\\]|\\.)*"?|[^\s"])+/g) ?? [];
}

function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  for (const word of splitWords(text)) {
    const key = /^([A-Za-z_]+):/.exec(word)?.[1];
    words.push({ key: key?.toLowerCase() ?? "", value: unquote(key ? word.slice(key.length + 1) : word), word });
  }
  return words;
}

function unquote(value: string): string {
  return value.replace(/"((?:[^"\\]|\\.)*)"?/g, (_, body: string) => body.replace(/\\(.)/g, "$1"));
}

function take(filter: Mutable<RunFilter>, written: string, value: string): string | null {
  const key = SAME_KEY[written] ?? written;
  if (!key) return takeId(filter, value);
  if (!value) return `add a value after ${key}:`;
  if (key === "is" || key === "not") return takeFlag(filter, value, key === "is");
  if (key === "status") return takeStatuses(filter, value);
  if (key === "workflow") return addOnce(filter.workflow, value);
  if (key === "label") return takeLabel(filter, value);
  if (key === "order") {
    if (value !== "created" && value !== "ended") return "order is created or ended";
    filter.order = value;
    return null;
  }
  for (const field of TIME_FIELDS) {
    if (field !== key) continue;
    if (!isTime(value)) return `${key} is a duration such as 24h, or a time such as 2026-11-16T14:00:00Z`;
    filter[field] = value;
    return null;
  }
  for (const field of TEXT_FIELDS) {
    if (field !== key) continue;
    filter[field] = value;
    return null;
  }
  const known = FILTER_KEYS.map(([each]) => each).join(", ");
  return `there is no filter named ${key}. Use one of ${known}. Quote an id that contains a colon`;
}

/** The first one counts; several are reported together. */
function takeId(filter: Mutable<RunFilter>, value: string): null {
  filter.id_prefix ||= value;
  return null;
}

function takeFlag(filter: Mutable<RunFilter>, value: string, wanted: boolean): string | null {
  const flag = FLAG_FIELDS.find((field: FlagField) => field === value.toLowerCase());
  if (!flag) {
    if (wanted && isStatus(value)) return addOnce(filter.status, value);
    return `use one of ${FLAG_FIELDS.join(", ")}`;
  }
  filter[flag] = wanted;
  return null;
}

function takeStatuses(filter: Mutable<RunFilter>, value: string): string | null {
  for (const word of value.toLowerCase().split(",").filter(Boolean)) {
    if (!isStatus(word)) return `status is one of ${RUN_STATUSES.join(", ")}`;
    addOnce(filter.status, word);
  }
  return null;
}

function takeLabel(filter: Mutable<RunFilter>, value: string): string | null {
  const [key] = splitLabel(value);
  if (value.indexOf("=") < 1) return "use the form label:key=value";
  filter.label = [...filter.label.filter((each) => splitLabel(each)[0] !== key), value];
  return null;
}

function addOnce<T>(list: T[], value: T): null {
  if (!list.includes(value)) list.push(value);
  return null;
}

/** The text that `parseFilter` parses to the same filter. */
export function formatFilter(filter: RunFilter): string {
  const words: string[] = [];
  for (const workflow of filter.workflow) words.push(`workflow:${quote(workflow)}`);
  if (filter.status.length) words.push(`status:${filter.status.join(",")}`);
  for (const label of filter.label) words.push(`label:${quote(label)}`);
  for (const field of FLAG_FIELDS) if (filter[field] !== null) words.push(`${filter[field] ? "is" : "not"}:${field}`);
  for (const field of TIME_FIELDS) if (filter[field]) words.push(`${field}:${quote(filter[field])}`);
  for (const field of TEXT_FIELDS) {
    if (filter[field] && field !== "id_prefix") words.push(`${field}:${quote(filter[field])}`);
  }
  if (filter.order) words.push(`order:${filter.order}`);
  const prefix = filter.id_prefix;
  if (prefix) words.push(/^[A-Za-z_]+:/.test(prefix) ? quoted(prefix) : quote(prefix));
  return words.join(" ");
}

export function quote(value: string): string {
  return /^[^\s"\\]+$/.test(value) ? value : quoted(value);
}

function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
