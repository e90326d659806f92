import type { ComponentChildren } from "preact";
import { ErrorBox, type ShownProblem } from "./error-box";
import { Skeleton } from "./skeleton";

/** The result of `useResource`. */
export interface LoadedResource<T> {
  readonly value: T | null;
  readonly error: ShownProblem | null;
  readonly loading: boolean;
  readonly stale: boolean;
  readonly reload: () => void;
}

interface LoadedProps<T> {
  readonly of: LoadedResource<T>;
  readonly rows?: number;
  readonly children: (value: T) => ComponentChildren;
}

/** Shows loading, an error, or the loaded value. An error is shown above the last value, which stays; a missing
 * response is reported by the bar of the frame. */
export function Loaded<T>({ of, rows, children }: LoadedProps<T>) {
  const { value, error } = of;
  const away = error?.code === "unreachable" && value !== null;
  return (
    <>
      {error && !away && <ErrorBox page={value === null} problem={error} onRetry={of.reload} />}
      {value === null && !error && <Skeleton {...(rows ? { rows } : {})} />}
      {value !== null && (
        <div class="loaded" data-stale={(of.stale && of.loading) || undefined}>
          {children(value)}
        </div>
      )}
    </>
  );
}
