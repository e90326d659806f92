import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { connection, retryNow } from "../api/live";
import { asProblem, type Problem } from "../api/problem";
import { skewMs } from "../state/clock";
import { dismiss, notices } from "../state/notices";
import { go, href, route } from "../state/route";
import { A } from "../ui/a";
import { Button } from "../ui/button";
import { Disconnected } from "../ui/disconnected";
import { ErrorBox } from "../ui/error-box";
import { Icon } from "../ui/icon";
import { ShortcutsOverlay, useShortcut } from "../ui/shortcuts";
import { Navigation } from "./navigation";
import { Palette } from "./palette";
import { SECTIONS } from "./sections";

interface FrameProps {
  readonly section: string;
  readonly title: string;
  /** Without navigation, if nobody is logged in. */
  readonly bare: boolean;
  readonly children: ComponentChildren;
}

/** The frame around every page; it stays if the page fails. */
export function Frame({ section, title, bare, children }: FrameProps) {
  const [open, setOpen] = useState<"" | "palette" | "keys">("");
  const main = useRef<HTMLElement>(null);
  const path = route.value.path;
  useNavigationKeys();
  useShortcut("Ctrl+k", "Search and commands", () => setOpen("palette"), "Everywhere");
  useShortcut("/", "Search", () => focusSearch(main.current) || setOpen("palette"), "Everywhere");
  useShortcut("?", "All keys", () => setOpen("keys"), "Everywhere");
  useEffect(() => {
    document.title = `${title} · Kagzi`;
  }, [title]);
  useFocusOnNewPage(main.current, path);
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      {!bare && <Navigation section={section} onSearch={() => setOpen("palette")} />}
      <ConnectionBar />
      <main id="main" class="main" ref={main} tabIndex={-1} data-lost={connection.value.state === "lost" || undefined}>
        <Guarded key={path}>{children}</Guarded>
      </main>
      <Notices />
      {open === "palette" && <Palette onClose={() => setOpen("")} />}
      {open === "keys" && <ShortcutsOverlay onClose={() => setOpen("")} />}
    </div>
  );
}

/** Prefers the search field of the page, if it has one. */
function focusSearch(main: HTMLElement | null): boolean {
  const field = main?.querySelector<HTMLInputElement>("input[data-search], input[type=search]");
  field?.focus();
  field?.select();
  return field !== null && field !== undefined;
}

function useNavigationKeys(): void {
  for (const section of SECTIONS) {
    useShortcut(`g ${section.key}`, section.label, () => go(href(section.path)), "Everywhere");
  }
}

/** Moves the focus to the new page, for screen readers and the keyboard. */
function useFocusOnNewPage(main: HTMLElement | null, path: string): void {
  const last = useRef(path);
  useLayoutEffect(() => {
    if (last.current === path) return;
    last.current = path;
    scrollTo(0, 0);
    main?.focus({ preventScroll: true });
  }, [path]);
}

function ConnectionBar() {
  const { state, since, retryAt } = connection.value;
  if (state !== "lost") return null;
  const skew = skewMs.value;
  return <Disconnected since={since + skew} retryAt={(retryAt ?? 0) + skew} onRetry={retryNow} />;
}

function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((each) => (
        <div key={each.id} class={`notice notice-${each.kind}`}>
          <Icon name={each.kind === "ok" ? "check" : "warning"} />
          {each.href === null ? <span>{each.text}</span> : <A href={each.href}>{each.text}</A>}
          <Button kind="quiet" icon="cross" label="Dismiss" onClick={() => dismiss(each.id)} />
        </div>
      ))}
    </div>
  );
}

/** Shows the error of a page that throws; the frame stays. */
class Guarded extends Component<{ children: ComponentChildren }, { problem: Problem | null }> {
  override state = { problem: null };

  static override getDerivedStateFromError(error: unknown): { problem: Problem } {
    return { problem: asProblem(error) };
  }

  override componentDidCatch(error: unknown): void {
    console.error(error);
  }

  override render() {
    const problem: Problem | null = this.state.problem;
    if (problem === null) return this.props.children;
    return <ErrorBox page problem={problem} onRetry={() => this.setState({ problem: null })} />;
  }
}
