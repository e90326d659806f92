import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { ErrorBox } from "../ui/error-box";
import { Skeleton } from "../ui/skeleton";

const TRIES = 5;
const PAUSE_MS = 400;
const USES = ["pointermove", "keydown", "touchstart"];

/** A part of the dashboard that is loaded once, when it is needed. */
export class Later<M extends object> {
  readonly loaded = signal<M | null>(null);
  readonly failed = signal(false);
  private loading = false;

  constructor(private readonly fetched: (attempt: number) => Promise<M>) {}

  /** Retries: during a deploy, servers of two builds may respond in turn, and those of the other build refuse. */
  async load(): Promise<void> {
    if (this.loading || this.loaded.peek() !== null) return;
    this.loading = true;
    this.failed.value = false;
    for (let attempt = 1; attempt <= TRIES && this.loaded.peek() === null; attempt += 1) {
      try {
        this.loaded.value = await this.fetched(attempt);
      } catch {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * attempt));
      }
    }
    this.loading = false;
    this.failed.value = this.loaded.peek() === null;
  }

  /** Loads on the first user interaction, so that it is ready when another page is opened. Focus and mouse events
   * without movement do not count: a page gets them by itself, the latter if it appears under the pointer. */
  loadAtFirstUse(): void {
    const used = (event: Event): void => {
      if (event instanceof MouseEvent && event.movementX === 0 && event.movementY === 0) return;
      for (const kind of USES) document.removeEventListener(kind, used);
      void this.load();
    };
    for (const kind of USES) document.addEventListener(kind, used, { passive: true });
  }

  page(name: { [K in keyof M]: M[K] extends ComponentType ? K : never }[keyof M]): ComponentType {
    const LaterPage = () => {
      useEffect(() => void this.load(), []);
      const pages = this.loaded.value;
      if (pages !== null) {
        const Page = pages[name] as ComponentType;
        return <Page />;
      }
      return this.failed.value ? <ErrorBox page problem={OUTDATED} onRetry={() => location.reload()} /> : <Skeleton />;
    };
    return LaterPage;
  }
}

const OUTDATED = {
  title: "This page could not be loaded",
  detail: "The server has a different version of the dashboard.",
  remedy: "If it was just updated, reload the page.",
};
