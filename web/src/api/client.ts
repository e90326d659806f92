import { joinEnvelope, splitEnvelope } from "../model/json-text";
import { Connecting } from "./connection";
import { isAway, problemFrom, unreachable } from "./problem";
import { pairsOf, type Query } from "./query";

export { Problem, asProblem } from "./problem";
export { type Query, type QueryValue } from "./query";

export interface GetOptions {
  readonly abort?: AbortSignal;
  /** Fields whose values are kept as they were sent, as `RawJson`, at any depth. */
  readonly raw?: readonly string[];
  /** Null: not about a namespace. Left out: the namespace in the page's address. */
  readonly namespace?: string | null;
}

export interface SendOptions {
  /** The Idempotency-Key, created once for each user action. */
  readonly key?: string;
  readonly query?: Query;
  readonly raw?: readonly string[];
  readonly namespace?: string | null;
  readonly abort?: AbortSignal;
}

/** What the client needs to know about the page; set once by `main`. */
export const place = {
  namespace: (): string => "default",
  /** Called when there is no valid key. */
  unauthorized: (): void => {},
};

/** The path prefix of the site, with a slash at both ends. */
export const base: string = readBase();

function readBase(): string {
  const meta =
    typeof document === "undefined" ? null : document.querySelector<HTMLMetaElement>("meta[name=kagzi-base]");
  const content = meta?.content ?? "/";
  return content.startsWith("/") && content.endsWith("/") ? content : "/";
}

/** Paths about the server as a whole, which take no namespace. */
const EVERYWHERE = /^\/(session|namespaces)(\/|$)/;
const KEPT_ANSWERS = 100;
/** Longer responses are not cached, to save memory. */
const KEPT_CHARACTERS = 500_000;

interface Kept {
  readonly tag: string;
  readonly value: unknown;
}

const kept = new Map<string, Kept>();

export const connecting = new Connecting(async (abort) => {
  const answer = await fetch(`${base}api/v1/server/health`, { signal: abort, cache: "no-store" });
  if (answer.status === 502 || answer.status === 504) throw unreachable();
});

export function addressOf(path: string, query?: Query, namespace?: string | null): string {
  const pairs = pairsOf(query);
  const wanted = namespace === undefined ? (EVERYWHERE.test(path) ? null : place.namespace()) : namespace;
  if (wanted !== null && wanted !== "default" && !pairs.some(([name]) => name === "namespace")) {
    pairs.push(["namespace", wanted]);
  }
  const search = new URLSearchParams(pairs).toString();
  return `${base}api/v1${path}${search ? `?${search}` : ""}`;
}

export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function request(address: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, { ...init, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    connecting.failed();
    throw unreachable();
  }
  if (answer.ok || answer.status === 304) {
    connecting.answered();
    return answer;
  }
  const problem = problemFrom(answer.status, await answer.json().catch(() => null));
  if (isAway(problem)) connecting.failed();
  else connecting.answered();
  if (problem.status === 401) place.unauthorized();
  throw problem;
}

/** Reading the body of a response can fail as well. */
async function textOf(answer: Response, abort: AbortSignal | undefined): Promise<string> {
  try {
    return await answer.text();
  } catch (error) {
    if (abort?.aborted) throw error;
    connecting.failed();
    throw unreachable();
  }
}

function decode(text: string, raw: readonly string[] | undefined): unknown {
  if (text === "") return null;
  return raw && raw.length > 0 ? splitEnvelope(text, new Set(raw)) : JSON.parse(text);
}

async function get<T>(path: string, query?: Query, options: GetOptions = {}): Promise<T> {
  const address = addressOf(path, query, options.namespace);
  const name = `${address} ${options.raw?.join() ?? ""}`;
  const known = kept.get(name);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (known) headers["If-None-Match"] = known.tag;
  const answer = await request(address, { headers, ...(options.abort ? { signal: options.abort } : {}) });
  if (answer.status === 304 && known) {
    keep(name, known);
    return known.value as T;
  }
  const text = await textOf(answer, options.abort);
  const value = decode(text, options.raw);
  const tag = answer.headers.get("ETag");
  if (tag && text.length <= KEPT_CHARACTERS) keep(name, { tag, value });
  else kept.delete(name);
  return value as T;
}

/** Newest last; the least recently used one is evicted first. */
function keep(name: string, answer: Kept): void {
  kept.delete(name);
  kept.set(name, answer);
  const oldest = kept.keys().next();
  if (kept.size > KEPT_ANSWERS && !oldest.done) kept.delete(oldest.value);
}

export function forgetAnswers(): void {
  kept.clear();
}

export type Method = "POST" | "PUT" | "PATCH" | "DELETE";

async function send<T>(method: Method, path: string, body?: unknown, options: SendOptions = {}): Promise<T> {
  const headers: Record<string, string> = {
    Accept: "application/json",
    "Content-Type": "application/json",
    "Kagzi-Request": "1",
    "Idempotency-Key": options.key ?? newKey(),
  };
  const answer = await request(addressOf(path, options.query, options.namespace), {
    method,
    headers,
    body: joinEnvelope(body ?? {}),
    ...(options.abort ? { signal: options.abort } : {}),
  });
  return decode(await textOf(answer, options.abort), options.raw) as T;
}

/** The body of a response, as text. */
async function text(path: string, query?: Query, options: { abort?: AbortSignal } = {}): Promise<string> {
  const init = options.abort ? { signal: options.abort } : {};
  return textOf(await request(addressOf(path, query), init), options.abort);
}

export const api = { get, send, text };
