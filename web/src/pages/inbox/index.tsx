import { useEffect, useMemo, useRef } from "preact/hooks";
import { InboxStore, type Card } from "../../state/inbox-store";
import { prefs, setPrefs } from "../../state/prefs";
import { href, namespace, route, setQuery } from "../../state/route";
import { can } from "../../state/session";
import { A } from "../../ui/a";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Empty } from "../../ui/empty";
import { ErrorBox } from "../../ui/error-box";
import { useShortcut } from "../../ui/shortcuts";
import { Skeleton } from "../../ui/skeleton";
import { InboxCard } from "./card";

/** Everything that waits for a person, with forms to answer in place. */
export function InboxPage() {
  const store = useMemo(() => new InboxStore(), [namespace.value]);
  useEffect(() => store.follow(), [store]);
  const list = useRef<HTMLDivElement>(null);
  useCardKeys(list);
  const chosen = route.value.query.get("signal");
  const muted = prefs.value.mutedSignals;
  const cards = store.cards.value;
  const shown = cards.filter((card) => (chosen === null ? !muted.includes(card.wait.signal) : card.wait.signal === chosen));
  const problem = store.problem.value;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Inbox</h1>
        {cards.length > 0 && <SignalChips cards={cards} chosen={chosen} muted={muted} />}
      </header>
      {problem !== null && <ErrorBox problem={problem} onRetry={() => void store.refresh()} />}
      {!store.loaded.value && problem === null && <Skeleton label="Loading the inbox" />}
      {store.loaded.value && shown.length === 0 && <Nothing hidden={cards.length} chosen={chosen} />}
      <div
        class="grid inbox-list"
        ref={list}
        onPointerEnter={() => store.hold("pointer", true)}
        onPointerLeave={() => store.hold("pointer", false)}
        onFocusIn={() => store.hold("focus", true)}
        onFocusOut={(event) => {
          if (!list.current?.contains(event.relatedTarget as Node | null)) store.hold("focus", false);
        }}
      >
        {shown.map((card) => (
          <InboxCard key={card.key} card={card} store={store} mayAnswer={can("client")} />
        ))}
      </div>
      {store.more.value && (
        <p class="dim">
          More runs are waiting than are shown here. <A href={href("/runs", { waiting: "true" })}>Show all</A>
        </p>
      )}
    </div>
  );
}

interface ChipsProps {
  readonly cards: readonly Card[];
  readonly chosen: string | null;
  readonly muted: readonly string[];
}

function SignalChips({ cards, chosen, muted }: ChipsProps) {
  const counts = new Map<string, number>();
  for (const card of cards) counts.set(card.wait.signal, (counts.get(card.wait.signal) ?? 0) + 1);
  const names = [...counts.keys()].sort();
  const choose = (name: string | null): void => setQuery({ signal: name }, { replace: true });
  const mute = (name: string): void => {
    setPrefs({ mutedSignals: muted.includes(name) ? muted.filter((each) => each !== name) : [...muted, name] });
    choose(null);
  };
  return (
    <div class="row inbox-chips" role="group" aria-label="By signal">
      <Chip selected={chosen === null} onClick={() => choose(null)}>
        All
      </Chip>
      {names.map((name) => (
        <Chip
          key={name}
          selected={chosen === name}
          onClick={() => choose(chosen === name ? null : name)}
          {...(muted.includes(name) ? { title: "Muted: shown only when selected" } : {})}
        >
          {name} {counts.get(name)}
          {muted.includes(name) && " (muted)"}
        </Chip>
      ))}
      {chosen !== null && (
        <Button kind="quiet" onClick={() => mute(chosen)} title="Hide signals that machines send">
          {muted.includes(chosen) ? `Unmute ${chosen}` : `Mute ${chosen}`}
        </Button>
      )}
    </div>
  );
}

function Nothing({ hidden, chosen }: { readonly hidden: number; readonly chosen: string | null }) {
  if (hidden > 0) {
    return (
      <Empty title={chosen === null ? "Nothing is waiting for you" : `Nothing is waiting for ${chosen}`}>
        <p>
          {hidden} {hidden === 1 ? "run is" : "runs are"} waiting for other signals. Select one above to see them.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing is waiting for a person" command={'approve = Signal("approve", bool)\n\nanswer = await ctx.wait_for(approve)'}>
      <p>Runs that wait for a signal appear here until somebody answers:</p>
    </Empty>
  );
}

function useCardKeys(list: { current: HTMLElement | null }): void {
  const cards = (): HTMLElement[] => [...(list.current?.querySelectorAll<HTMLElement>("[data-card]") ?? [])];
  const at = (): number => cards().findIndex((card) => card.contains(document.activeElement));
  const move = (by: number): boolean => {
    const all = cards();
    const here = at();
    const to = all[here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by];
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
    return to !== undefined;
  };
  const press = (selector: string): boolean => {
    const button = cards()[at()]?.querySelector<HTMLElement>(selector);
    button?.click();
    return button !== null && button !== undefined;
  };
  useShortcut("j", "Next card", () => move(1));
  useShortcut("k", "Previous card", () => move(-1));
  useShortcut("a", "Approve", () => press(".inbox-yes"));
  useShortcut("d", "Decline", () => press(".inbox-no"));
}
