import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { connecting } from "../api/client";
import { asking } from "../api/live";
import { asProblem, type Problem } from "../api/problem";

export interface Resource<T> {
  /** The last loaded value; kept while another one loads, and after an error. */
  readonly value: T | null;
  readonly error: Problem | null;
  readonly loading: boolean;
  /** `value` belongs to an earlier request, or is older than an error. */
  readonly stale: boolean;
  readonly reload: () => void;
}

interface Held<T> {
  readonly value: T | null;
  readonly error: Problem | null;
  readonly loading: boolean;
  readonly stale: boolean;
}

/** Loads when the component is shown and whenever `deps` change; with `every`, again that many seconds after each
 * response while the page is visible. Obsolete requests are aborted. */
export function useResource<T>(
  load: (abort: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
  options: { every?: number } = {},
): Resource<T> {
  const [held, setHeld] = useState<Held<T>>({ value: null, error: null, loading: true, stale: false });
  const loading = useRef<Loader<T> | null>(null);
  useEffect(() => {
    const loader = new Loader(load, setHeld);
    loading.current = loader;
    const stop = options.every === undefined ? loader.once() : asking(options.every, () => loader.ask());
    return () => {
      stop();
      loader.stop();
    };
  }, [...deps, options.every]);
  const reload = useCallback(() => void loading.current?.ask(), []);
  return { ...held, reload };
}

type SetHeld<T> = (change: (was: Held<T>) => Held<T>) => void;

/** Loads one resource. */
export class Loader<T> {
  private readonly abort = new AbortController();
  private asked = 0;

  constructor(
    private readonly load: (abort: AbortSignal) => Promise<T>,
    private readonly set: SetHeld<T>,
  ) {
    set((was) => ({ ...was, loading: true, stale: was.value !== null, error: null }));
  }

  /** Loads once, and again when an unavailable server is back. */
  once(): () => void {
    void this.ask();
    return connecting.restored(() => void this.ask());
  }

  stop(): void {
    this.abort.abort();
  }

  async ask(): Promise<void> {
    this.asked += 1;
    const number = this.asked;
    try {
      const value = await this.load(this.abort.signal);
      if (this.isLatest(number)) this.set((was) => settled(was, value));
    } catch (error) {
      if (this.isLatest(number)) {
        this.set((was) => ({ ...was, error: asProblem(error), loading: false, stale: was.value !== null }));
      }
    }
  }

  private isLatest(number: number): boolean {
    return number === this.asked && !this.abort.signal.aborted;
  }
}

/** Avoids a render if the value, or every member of the object, is the same. */
function settled<T>(was: Held<T>, value: T): Held<T> {
  if (isSame(was.value, value) && was.error === null && !was.loading && !was.stale) return was;
  return { value, error: null, loading: false, stale: false };
}

function isSame(was: unknown, is: unknown): boolean {
  if (was === is) return true;
  if (typeof was !== "object" || typeof is !== "object" || was === null || is === null) return false;
  const [before, after] = [Object.entries(was), Object.entries(is)];
  const known = was as Readonly<Record<string, unknown>>;
  return before.length === after.length && after.every(([name, value]) => name in known && known[name] === value);
}
