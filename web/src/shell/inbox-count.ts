import { signal, type ReadonlySignal } from "@preact/signals";
import { api } from "../api/client";
import type { Paged, RunView } from "../api/types";

const MOST = 99;
const count = signal(0);

/** How many runs wait for a person; 100 means more than 99. */
export const inboxCount: ReadonlySignal<number> = count;

export async function askInboxCount(): Promise<void> {
  const page = await api.get<Paged<RunView>>("/runs", { waiting: true, size: 1, count: true });
  count.value = Math.min(page.count ?? 0, MOST + 1);
}

export function shownCount(waiting: number): string {
  return waiting > MOST ? `${MOST}+` : String(waiting);
}
