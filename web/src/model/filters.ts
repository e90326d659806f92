// The filter of a list of runs. The search box, the chips, the page's address and the API's parameters are views of it.
import { parseDuration } from "./durations";
import {
  EVERY_RUN,
  FLAG_FIELDS,
  type FlagField,
  isStatus,
  isTime,
  LIST_FIELDS,
  type RunFilter,
  splitLabel,
  TEXT_FIELDS,
  type TextField,
  TIME_FIELDS,
  type TimeField,
} from "./filter-fields";
import { formatTime, toMs, toUtc, type Zone } from "./times";

export * from "./filter-fields";
export { FILTER_KEYS, type FilterError, formatFilter, type ParsedFilter, parseFilter } from "./filter-text";

/** Predefined filters. */
export const shortcuts = {
  inFlight: { ...EVERY_RUN, status: ["pending", "running", "sleeping"] },
  failing: { ...EVERY_RUN, failing: true },
  // By the end: a run that started last week and failed this morning failed today.
  failedToday: { ...EVERY_RUN, status: ["failed"], ended_since: "24h" },
  waitingForPerson: { ...EVERY_RUN, waiting: true },
  paused: { ...EVERY_RUN, status: ["paused"] },
} as const satisfies Record<string, RunFilter>;

export type ShortcutName = keyof typeof shortcuts;

export function sameFilter(a: RunFilter, b: RunFilter): boolean {
  return JSON.stringify(canonical(a)) === JSON.stringify(canonical(b));
}

function canonical(filter: RunFilter): [string, string][] {
  return filterToUrl(filter).sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1));
}

// --- addresses and requests ------------------------------------------------------------------------------------------

/** The parameters of the page's address: durations stay durations, so that a link to the last 24 hours stays one. */
export function filterToUrl(filter: RunFilter): [string, string][] {
  const pairs: [string, string][] = [];
  for (const field of LIST_FIELDS) for (const value of filter[field]) pairs.push([field, value]);
  for (const field of [...TIME_FIELDS, ...TEXT_FIELDS]) if (filter[field]) pairs.push([field, filter[field]]);
  for (const field of FLAG_FIELDS) if (filter[field] !== null) pairs.push([field, String(filter[field])]);
  if (filter.order) pairs.push(["order", filter.order]);
  return pairs;
}

/** The parameters of `GET /runs`. Durations become times, rounded to minutes, so that repeated requests are equal. */
export function filterToQuery(filter: RunFilter, nowMs: number = Date.now()): [string, string][] {
  return filterToUrl(filter).map(([field, value]) =>
    (TIME_FIELDS as readonly string[]).includes(field) ? [field, momentOf(value, nowMs)] : [field, value],
  );
}

/** The filter as the body of an operation. `label` becomes `labels`. */
export function filterToBody(filter: RunFilter, nowMs: number = Date.now()): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  if (filter.status.length) body["status"] = filter.status;
  if (filter.workflow.length) body["workflow"] = filter.workflow;
  if (filter.label.length) body["labels"] = Object.fromEntries(filter.label.map(splitLabel));
  for (const field of TIME_FIELDS) if (filter[field]) body[field] = momentOf(filter[field], nowMs);
  for (const field of TEXT_FIELDS) if (filter[field]) body[field] = filter[field];
  for (const field of FLAG_FIELDS) if (filter[field] !== null) body[field] = filter[field];
  return body;
}

function momentOf(value: string, nowMs: number): string {
  const before = parseDuration(value);
  return before === null ? value : toUtc(Math.floor((nowMs - before) / 60_000) * 60_000);
}

/** Reads the page's address. Invalid values are ignored: an old link shows more runs instead of failing. */
export function filterFromQuery(params: URLSearchParams): RunFilter {
  const text = (field: string) => params.get(field) ?? "";
  const flag = (field: string) => (params.has(field) ? /^(true|1|)$/i.test(text(field)) : null);
  const time = (field: string) => (isTime(text(field)) ? text(field) : "");
  const order = text("order");
  return {
    status: unique(params.getAll("status")).filter(isStatus),
    workflow: unique(params.getAll("workflow")).filter(Boolean),
    label: uniqueKeys(params.getAll("label").filter((each) => each.indexOf("=") > 0)),
    since: time("since"),
    until: time("until"),
    ended_since: time("ended_since"),
    ended_until: time("ended_until"),
    id: text("id"),
    id_prefix: text("id_prefix"),
    version: text("version"),
    parent: text("parent"),
    schedule: text("schedule"),
    key: text("key"),
    worker: text("worker"),
    problem: flag("problem"),
    failing: flag("failing"),
    waiting: flag("waiting"),
    order: order === "created" || order === "ended" ? order : null,
  };
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

// The API refuses a repeated label key; the last one counts.
function uniqueKeys(labels: readonly string[]): string[] {
  return [...new Map(labels.map((label) => [splitLabel(label)[0], label])).values()];
}

// --- chips and words -------------------------------------------------------------------------------------------------

export interface Chip {
  readonly key: string;
  readonly label: string;
  /** The filter without this condition. */
  readonly without: RunFilter;
}

const FLAG_WORDS: Record<FlagField, readonly [string, string]> = {
  problem: ["with a problem", "without a problem"],
  failing: ["failing", "not failing"],
  waiting: ["waiting for a signal", "not waiting for a signal"],
};
const TIME_WORDS: Record<TimeField, string> = {
  since: "created since",
  until: "created before",
  ended_since: "ended since",
  ended_until: "ended before",
};
const TEXT_WORDS: Record<TextField, string> = {
  id: "workflow id",
  id_prefix: "id begins with",
  version: "version",
  parent: "child of",
  schedule: "started by schedule",
  key: "concurrency key",
  worker: "on worker",
};

/** One chip for each condition, each with the filter without it. */
export function chipsOf(filter: RunFilter, zone: Zone = "local"): Chip[] {
  const chips: Chip[] = [];
  const add = (key: string, label: string, change: Partial<RunFilter>) =>
    chips.push({ key, label, without: { ...filter, ...change } });
  for (const field of LIST_FIELDS) {
    for (const value of filter[field]) {
      const rest = (filter[field] as readonly string[]).filter((each) => each !== value);
      add(`${field}:${value}`, field === "label" ? value : `${field} ${value}`, { [field]: rest });
    }
  }
  for (const field of TIME_FIELDS) {
    if (filter[field]) add(field, `${TIME_WORDS[field]} ${timeWords(filter[field], zone)}`, { [field]: "" });
  }
  for (const field of TEXT_FIELDS) {
    if (filter[field]) add(field, `${TEXT_WORDS[field]} ${filter[field]}`, { [field]: "" });
  }
  for (const field of FLAG_FIELDS) {
    if (filter[field] !== null) add(field, FLAG_WORDS[field][filter[field] ? 0 : 1], { [field]: null });
  }
  if (filter.order) add("order", `by ${filter.order === "ended" ? "end" : "creation"}`, { order: null });
  return chips;
}

function timeWords(value: string, zone: Zone): string {
  return parseDuration(value) === null ? formatTime(toMs(value), zone, "datetime") : `${value} ago`;
}

/** In words, for the dialog of bulk operations: `runs that are failed or paused, of workflow order, ...`. */
export function describeFilter(filter: RunFilter, zone: Zone = "local"): string {
  const parts: string[] = [];
  if (filter.status.length) parts.push(`that are ${oneOf(filter.status)}`);
  for (const field of FLAG_FIELDS) {
    if (filter[field] !== null) parts.push(`that are ${FLAG_WORDS[field][filter[field] ? 0 : 1]}`);
  }
  if (filter.workflow.length) parts.push(`of workflow ${oneOf(filter.workflow)}`);
  for (const label of filter.label) parts.push(`with label ${label}`);
  for (const field of TIME_FIELDS) {
    if (filter[field]) parts.push(`${TIME_WORDS[field]} ${timeWords(filter[field], zone)}`);
  }
  if (filter.id) parts.push(`with workflow id ${filter.id}`);
  if (filter.id_prefix) parts.push(`whose id begins with ${filter.id_prefix}`);
  if (filter.version) parts.push(`of version ${filter.version}`);
  if (filter.parent) parts.push(`that are children of ${filter.parent}`);
  if (filter.schedule) parts.push(`started by schedule ${filter.schedule}`);
  if (filter.key) parts.push(`with concurrency key ${filter.key}`);
  if (filter.worker) parts.push(`on worker ${filter.worker}`);
  return parts.length ? `runs ${parts.join(", ")}` : "all runs";
}

function oneOf(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} or ${words.at(-1) ?? ""}`;
}
