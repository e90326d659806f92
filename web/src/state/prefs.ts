import { effect, signal, type Signal } from "@preact/signals";

export interface Prefs {
  readonly theme: "system" | "light" | "dark";
  /** "local", "utc", or the name of a time zone such as `Europe/Berlin`. */
  readonly zone: "local" | "utc" | (string & {});
  readonly density: "normal" | "compact";
  /** Whether single-letter shortcuts are on. */
  readonly singleKeys: boolean;
  /** Width of the inspector, in pixels. */
  readonly inspector: number;
  /** Signals that programs answer, and that the inbox hides. */
  readonly mutedSignals: readonly string[];
}

export const DEFAULT_PREFS: Prefs = {
  theme: "system",
  zone: "local",
  density: "normal",
  singleKeys: true,
  inspector: 380,
  mutedSignals: [],
};

const NAME = "kagzi.prefs";

/** Reads stored preferences; invalid values become the defaults. */
export function readPrefs(text: string | null): Prefs {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? "{}");
  } catch {
    stored = {};
  }
  const value = (typeof stored === "object" && stored !== null ? stored : {}) as Partial<Record<keyof Prefs, unknown>>;
  const { theme, zone, density, singleKeys, inspector, mutedSignals } = value;
  return {
    theme: theme === "light" || theme === "dark" ? theme : "system",
    zone: typeof zone === "string" && isZone(zone) ? zone : "local",
    density: density === "compact" ? "compact" : "normal",
    singleKeys: singleKeys !== false,
    inspector: typeof inspector === "number" && inspector >= 240 && inspector <= 1600 ? inspector : 380,
    mutedSignals: Array.isArray(mutedSignals) ? mutedSignals.filter((each) => typeof each === "string") : [],
  };
}

export function isZone(zone: string): boolean {
  if (zone === "local" || zone === "utc") return true;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

function storage(): Storage | null {
  try {
    return typeof localStorage === "undefined" ? null : localStorage;
  } catch {
    return null; // the browser stores nothing for this site
  }
}

export const prefs: Signal<Prefs> = signal(readPrefs(storage()?.getItem(NAME) ?? null));

export function setPrefs(patch: Partial<Prefs>): void {
  prefs.value = { ...prefs.value, ...patch };
}

effect(() => {
  const text = JSON.stringify(prefs.value);
  try {
    if (storage()?.getItem(NAME) !== text) storage()?.setItem(NAME, text);
  } catch {
    // full or forbidden: the preferences then last for this page only
  }
});

if (typeof addEventListener !== "undefined") {
  addEventListener("storage", (event) => {
    const stored = event as StorageEvent;
    if (stored.key === NAME && stored.newValue !== JSON.stringify(prefs.value))
      prefs.value = readPrefs(stored.newValue);
  });
}
