// Where a list of runs comes from.
import { api } from "../api/client";
import { asking, watchRuns } from "../api/live";
import { asProblem } from "../api/problem";
import type { LiveListView, Paged, RunView } from "../api/types";
import { type Connect, PAGE_ROWS, type PageTokens } from "./runs-store";

const ASK_S = 5;

export type Pairs = readonly (readonly [string, string])[];

/** The first page, with its changes. */
export function firstPage(query: Pairs): Connect {
  return (on) => watchRuns(query, on);
}

/** A later page, polled every few seconds together with the counts of the namespace. */
export function laterPage(query: Pairs, token: string, onTokens: (tokens: PageTokens) => void): Connect {
  return (on) => {
    const stops = [
      asking(ASK_S, async () => {
        try {
          const page = await api.get<Paged<RunView>>("/runs", [...query, ["size", String(PAGE_ROWS)], ["token", token]]);
          onTokens({ next: page.next, prev: page.prev });
          on.rows(page.rows, page.next !== null);
        } catch (error) {
          on.problem?.(asProblem(error));
        }
      }),
      asking(ASK_S, async () => on.stats((await api.get<LiveListView>("/runs/events", query)).stats)),
    ];
    return () => stops.forEach((stop) => stop());
  };
}

/** The token of the second page, after the current first rows. */
export async function tokenOfSecondPage(query: Pairs): Promise<string | null> {
  return (await api.get<Paged<RunView>>("/runs", [...query, ["size", String(PAGE_ROWS)]])).next;
}
