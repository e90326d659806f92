import { signal, type ReadonlySignal } from "@preact/signals";

/** How far the server's clock is ahead of this browser's. */
export const skewMs = signal(0);

/** The time by the server's clock, so that durations since its times are never negative. */
export function serverNow(): number {
  return Date.now() + skewMs.peek();
}

/** Learns from a response: the server's time, and when the request began and ended by this clock. */
export function learnTime(serverMs: number, askedAt: number, answeredAt: number): void {
  const skew = serverMs - (askedAt + answeredAt) / 2;
  // a difference within the round-trip time carries no information
  if (Math.abs(skew - skewMs.peek()) > (answeredAt - askedAt) / 2) skewMs.value = skew;
}

/** A clock that runs only while it is observed. */
function ticking(everyMs: number): ReadonlySignal<number> {
  let timer: ReturnType<typeof setInterval> | undefined;
  const clock = signal(serverNow(), {
    watched() {
      clock.value = serverNow();
      timer = setInterval(() => {
        if (typeof document === "undefined" || document.visibilityState === "visible") clock.value = serverNow();
      }, everyMs);
    },
    unwatched() {
      clearInterval(timer);
    },
  });
  return clock;
}

export const now: ReadonlySignal<number> = ticking(250);
export const secondNow: ReadonlySignal<number> = ticking(1000);
export const minuteNow: ReadonlySignal<number> = ticking(15_000);
