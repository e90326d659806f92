import { signal, type ReadonlySignal } from "@preact/signals";

/** How far the server's clock is ahead of this browser's. */
export const skewMs = signal(0);

/** The time by the server's clock: durations are differences of its times, and so never negative. */
export function serverNow(): number {
  return Date.now() + skewMs.peek();
}

/** Learns from an answer: what the server's clock said, and when it was asked and answered by this one. */
export function learnTime(serverMs: number, askedAt: number, answeredAt: number): void {
  const skew = serverMs - (askedAt + answeredAt) / 2;
  // within the time that the answer took, nothing is known that was not known before
  if (Math.abs(skew - skewMs.peek()) > (answeredAt - askedAt) / 2) skewMs.value = skew;
}

/** A clock that goes only while somebody looks at it. */
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
