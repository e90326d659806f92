import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { connecting } from "../api/client";
import { asking } from "../api/live";
import { asProblem, type Problem } from "../api/problem";

export interface Resource<T> {
  /** What was last loaded; it stays while something else is asked for, and after an error. */
  readonly value: T | null;
  readonly error: Problem | null;
  readonly loading: boolean;
  /** `value` is of another question than is asked now, or older than an error. */
  readonly stale: boolean;
  readonly reload: () => void;
}

interface Held<T> {
  readonly value: T | null;
  readonly error: Problem | null;
  readonly loading: boolean;
  readonly stale: boolean;
}

/** Loads when the component is shown and whenever `deps` change; with `every`, again so many seconds after each answer
 * while the page is visible. A request that is not wanted any more is aborted. */
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

/** The asking for one question. */
export class Loader<T> {
  private readonly abort = new AbortController();
  private asked = 0;

  constructor(
    private readonly load: (abort: AbortSignal) => Promise<T>,
    private readonly set: SetHeld<T>,
  ) {
    set((was) => ({ ...was, loading: true, stale: was.value !== null, error: null }));
  }

  /** Asks once, and again if the server was away and is back. */
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

/** Nothing is rendered for the same answer, or for an object of the same answers. */
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
