import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { base } from "../api/client";
import { pairsOf, type Query } from "../api/query";

export interface Route {
  /** Below the base path, with a leading slash: `/runs/01K9`. */
  readonly path: string;
  /** Decoded: `%2F` in the address is a slash within a segment. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

export const DEFAULT_NAMESPACE = "default";

export function readRoute(basePath: string, pathname: string, search: string): Route {
  const path = pathname.startsWith(basePath) ? pathname.slice(basePath.length - 1) : pathname;
  return {
    path,
    segments: path
      .split("/")
      .filter((each) => each !== "")
      .map(decoded),
    query: new URLSearchParams(search),
  };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const here = (): Route =>
  typeof location === "undefined" ? readRoute("/", "/", "") : readRoute(base, location.pathname, location.search);

const current = signal<Route>(here());

export const route: ReadonlySignal<Route> = current;
export const namespace: ReadonlySignal<string> = computed(
  () => current.value.query.get("namespace") || DEFAULT_NAMESPACE,
);

/** Encodes a name as one segment of a path, including its slashes. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

/** The address of a page, below the base path and in the current namespace, unless the query names another. */
export function href(path: string, query?: Query): string {
  const pairs = pairsOf(query);
  const named = pairs.some(([name]) => name === "namespace");
  if (!named && namespace.value !== DEFAULT_NAMESPACE) pairs.push(["namespace", namespace.value]);
  return addressFrom(
    base,
    path,
    pairs.filter(([name, value]) => name !== "namespace" || value !== DEFAULT_NAMESPACE),
  );
}

export function addressFrom(basePath: string, path: string, pairs: readonly (readonly [string, string])[]): string {
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString();
  return `${basePath}${path.replace(/^\//, "")}${search ? `?${search}` : ""}`;
}

export interface GoOptions {
  /** Replace the current history entry instead of adding one. */
  readonly replace?: boolean;
}

/** Opens a page of the dashboard. Other addresses are left to the browser. */
export function go(address: string, options: GoOptions = {}): void {
  const to = new URL(address, location.href);
  if (to.origin !== location.origin || !to.pathname.startsWith(base)) {
    location.assign(to.href);
    return;
  }
  if (options.replace) history.replaceState(history.state, "", to);
  else if (to.href !== location.href) history.pushState(null, "", to);
  current.value = here();
}

export type QueryPatch = Readonly<Record<string, string | readonly string[] | null>>;

/** The query with these parameters replaced; null removes one. All others stay unchanged. */
export function patched(query: URLSearchParams, patch: QueryPatch): URLSearchParams {
  const result = new URLSearchParams(query);
  for (const [name, value] of Object.entries(patch)) {
    result.delete(name);
    if (value === null) continue;
    for (const each of typeof value === "string" ? [value] : value) result.append(name, each);
  }
  return result;
}

export function setQuery(patch: QueryPatch, options: GoOptions = {}): void {
  const query = patched(current.value.query, patch).toString();
  if (query === current.value.query.toString()) return;
  go(`${location.pathname}${query ? `?${query}` : ""}`, options);
}

if (typeof addEventListener !== "undefined" && typeof location !== "undefined") {
  addEventListener("popstate", () => {
    current.value = here();
  });
}
