import { signal, type ReadonlySignal } from "@preact/signals";

/** What components need to know about the page. `main` sets it, so that components do not depend on the state. */
export const surroundings = {
  /** The time zone for display. */
  zone: signal<string>("local"),
  /** The server does not respond: the data are outdated, and no action is possible. */
  offline: signal(false),
  /** Whether single-letter shortcuts are on. */
  singleKeys: signal(true),
  /** The current namespace, and those that the key permits. */
  namespace: signal("default") as ReadonlySignal<string>,
  namespaces: signal<readonly string[]>([]),
  /** How long ended runs are kept, in words; empty: unknown. */
  retention: signal(""),
  /** The server's time, updated every second. */
  second: signal(Date.now()) as ReadonlySignal<number>,
  /** The server's time, updated a few times a minute. */
  minute: signal(Date.now()) as ReadonlySignal<number>,
  /** Opens an address without reloading the page. */
  go: (address: string): void => location.assign(address),
  /** The address of this page in another namespace. */
  inNamespace: (name: string): string => `?namespace=${encodeURIComponent(name)}`,
};
