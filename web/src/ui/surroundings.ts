import { signal, type ReadonlySignal } from "@preact/signals";

/** What components have to know of the page around them. `main` sets it; components know nothing of the state. */
export const surroundings = {
  /** In which zone times are shown. */
  zone: signal<string>("local"),
  /** The server does not answer: what is shown is old, and nothing can be done. */
  offline: signal(false),
  /** Whether single letters are keys. */
  singleKeys: signal(true),
  /** The namespace that is shown, and those that the key can see. */
  namespace: signal("default") as ReadonlySignal<string>,
  namespaces: signal<readonly string[]>([]),
  /** How long ended runs are kept, in words; empty: not known. */
  retention: signal(""),
  /** The server's time, each second. */
  second: signal(Date.now()) as ReadonlySignal<number>,
  /** The same, a few times a minute. */
  minute: signal(Date.now()) as ReadonlySignal<number>,
  /** Opens an address without loading the page anew. */
  go: (address: string): void => location.assign(address),
  /** The address of this very page in another namespace. */
  inNamespace: (name: string): string => `?namespace=${encodeURIComponent(name)}`,
};
