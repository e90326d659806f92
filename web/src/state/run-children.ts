// Steps of expanded child runs: loaded on expansion, and updated while the child is open.
import { signal } from "@preact/signals";
import { api } from "../api/client";
import { asking } from "../api/live";
import type { TimelineStepView, TimelineView } from "../api/types";

const PAGE_STEPS = 200;
const ASK_S = 2;
/** Updating more children would cost too much. */
const LIVE_MOST = 20;

export interface ChildSteps {
  steps: readonly TimelineStepView[];
  /** There are older steps. */
  older: boolean;
  loading: boolean;
  failed: string | null;
}

const LOADING: ChildSteps = { steps: [], older: false, loading: true, failed: null };

export class ChildRuns {
  readonly all = signal<ReadonlyMap<string, ChildSteps>>(new Map());
  private live = new Map<string, () => void>();

  /** Sets which children are expanded; others are no longer loaded. `isOpen`: whether the child run is open. */
  show(runIds: ReadonlyMap<string, boolean>): void {
    for (const [runId, stop] of this.live) {
      if (runIds.get(runId) === true) continue;
      stop();
      this.live.delete(runId);
    }
    for (const [runId, goesOn] of runIds) {
      if (!this.all.peek().has(runId)) {
        this.put(runId, LOADING);
        void this.load(runId);
      } else if (!goesOn && this.stale.delete(runId)) {
        void this.load(runId); // it has ended: load the last steps
      }
      if (goesOn && !this.live.has(runId) && this.live.size < LIVE_MOST) {
        this.stale.add(runId);
        this.live.set(
          runId,
          asking(ASK_S, () => this.load(runId)),
        );
      }
    }
  }

  private stale = new Set<string>();

  async more(runId: string): Promise<void> {
    const known = this.all.peek().get(runId);
    const oldest = Math.min(...(known?.steps.map((step) => step.begun_seq) ?? []));
    if (known === undefined || !Number.isFinite(oldest)) return;
    const page = await this.page(runId, { before: String(oldest) });
    this.put(runId, { ...known, steps: merged(known.steps, page.rows), older: page.older });
  }

  close(): void {
    for (const stop of this.live.values()) stop();
    this.live.clear();
  }

  private async load(runId: string): Promise<void> {
    try {
      const page = await this.page(runId, {});
      const known = this.all.peek().get(runId);
      const first = known === undefined || known.steps.length === 0;
      const steps = merged(known?.steps ?? [], page.rows);
      this.put(runId, {
        steps,
        older: first ? page.older : (known?.older ?? page.older),
        loading: false,
        failed: null,
      });
    } catch (error) {
      const known = this.all.peek().get(runId) ?? LOADING;
      this.put(runId, {
        ...known,
        loading: false,
        failed: error instanceof Error ? error.message : String(error),
      });
    }
  }

  private page(runId: string, query: Readonly<Record<string, string>>): Promise<TimelineView> {
    return api.get<TimelineView>(`/runs/${encodeURIComponent(runId)}/timeline`, {
      ...query,
      size: String(PAGE_STEPS),
    });
  }

  private put(runId: string, steps: ChildSteps): void {
    this.all.value = new Map(this.all.peek()).set(runId, steps);
  }
}

function merged(known: readonly TimelineStepView[], rows: readonly TimelineStepView[]): readonly TimelineStepView[] {
  const byId = new Map(known.map((step) => [step.step_id, step]));
  for (const row of rows) byId.set(row.step_id, row);
  return [...byId.values()].sort((a, b) => a.created_at.localeCompare(b.created_at) || a.begun_seq - b.begun_seq);
}
