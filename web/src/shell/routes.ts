import type { ComponentType } from "preact";

/** A page and its paths: `:name` matches any segment. Pages read the segments from `route`. */
export interface PageRoute {
  readonly pattern: string;
  readonly page: ComponentType;
  readonly title: string;
  /** The entry of the navigation that is highlighted. */
  readonly section: string;
}

export function matches(pattern: string, segments: readonly string[]): boolean {
  const parts = pattern.split("/").filter((part) => part !== "");
  return parts.length === segments.length && parts.every((part, at) => part.startsWith(":") || part === segments[at]);
}

export function findPage(routes: readonly PageRoute[], segments: readonly string[]): PageRoute | null {
  return routes.find((each) => matches(each.pattern, segments)) ?? null;
}
