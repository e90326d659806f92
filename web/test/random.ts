// A seeded generator (mulberry32): a failing case is found again by its seed.

export class Random {
  constructor(private state: number) {}

  /** From 0 up to 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick<T>(from: readonly T[]): T {
    return from[this.whole(0, from.length - 1)] as T;
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  text(alphabet: string, most: number): string {
    return Array.from({ length: this.whole(0, most) }, () => this.pick([...alphabet])).join("");
  }
}

/** Runs the property for each seed, and names the seed at which it fails. */
export function forSeeds(count: number, property: (random: Random, seed: number) => void): void {
  for (let seed = 1; seed <= count; seed += 1) {
    try {
      property(new Random(seed * 7919), seed);
    } catch (problem) {
      const message = problem instanceof Error ? problem.message : String(problem);
      throw new Error(`seed ${seed}: ${message}`, { cause: problem });
    }
  }
}
