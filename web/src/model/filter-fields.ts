// The conditions of a list of runs, by the names of the API.
import { parseDuration } from "./durations";
import type { RunStatus } from "./records";
import { toMs } from "./times";

export type RunOrder = "created" | "ended";

/** All conditions must hold. Times are RFC 3339, or a duration before now: `24h`. Empty and null: no condition. */
export interface RunFilter {
  readonly status: readonly RunStatus[];
  readonly workflow: readonly string[];
  readonly label: readonly string[]; // key=value
  readonly since: string;
  readonly until: string;
  readonly ended_since: string;
  readonly ended_until: string;
  readonly id: string;
  readonly id_prefix: string;
  readonly version: string;
  readonly parent: string;
  readonly schedule: string;
  readonly key: string;
  readonly worker: string;
  readonly problem: boolean | null;
  readonly failing: boolean | null;
  readonly waiting: boolean | null;
  readonly order: RunOrder | null;
}

export const EVERY_RUN: RunFilter = {
  status: [],
  workflow: [],
  label: [],
  since: "",
  until: "",
  ended_since: "",
  ended_until: "",
  id: "",
  id_prefix: "",
  version: "",
  parent: "",
  schedule: "",
  key: "",
  worker: "",
  problem: null,
  failing: null,
  waiting: null,
  order: null,
};

export const RUN_STATUSES: readonly RunStatus[] = [
  "pending",
  "running",
  "sleeping",
  "paused",
  "completed",
  "failed",
  "cancelled",
];

export type ListField = "status" | "workflow" | "label";
export type TimeField = "since" | "until" | "ended_since" | "ended_until";
export type TextField = "id" | "id_prefix" | "version" | "parent" | "schedule" | "key" | "worker";
export type FlagField = "problem" | "failing" | "waiting";

export const LIST_FIELDS: readonly ListField[] = ["status", "workflow", "label"];
export const TIME_FIELDS: readonly TimeField[] = ["since", "until", "ended_since", "ended_until"];
export const TEXT_FIELDS: readonly TextField[] = ["id", "id_prefix", "version", "parent", "schedule", "key", "worker"];
export const FLAG_FIELDS: readonly FlagField[] = ["problem", "failing", "waiting"];

export function splitLabel(label: string): [string, string] {
  const at = label.indexOf("=");
  return at < 0 ? [label, ""] : [label.slice(0, at), label.slice(at + 1)];
}

export function isStatus(word: string): word is RunStatus {
  return (RUN_STATUSES as readonly string[]).includes(word);
}

export function isTime(value: string): boolean {
  return !Number.isNaN(toMs(value)) || parseDuration(value) !== null;
}
