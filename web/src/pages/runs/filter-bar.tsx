import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CountsView, CountView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import {
  chipsOf,
  EVERY_RUN,
  FILTER_KEYS,
  type FilterError,
  filterToUrl,
  formatFilter,
  parseFilter,
  type RunFilter,
  sameFilter,
  shortcuts,
} from "../../model/filters";
import { prefs } from "../../state/prefs";
import { href } from "../../state/route";
import { A } from "../../ui/a";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { TextInput } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { useShortcut } from "../../ui/shortcuts";

export interface FilterBarProps {
  readonly filter: RunFilter;
  /** `typing`: more input may follow, so the browser's history does not get an entry for each letter. */
  readonly onFilter: (filter: RunFilter, typing: boolean) => void;
}

const TYPING_MS = 300;
const OFFERED = ["workflow", "status", "label", "since"] as const;
const FLAGS = ["is:failing", "is:waiting"] as const;

/** The search box and the chips: two views of one filter. */
export function FilterBar({ filter, onFilter }: FilterBarProps) {
  const [text, setText] = useState(() => boxText(filter));
  const [errors, setErrors] = useState<readonly FilterError[]>([]);
  const sent = useRef(filter);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const box = useRef<HTMLInputElement>(null);
  useShortcut("/", "Search", () => box.current?.focus());
  useEffect(() => {
    // A filter that came from the box is not written back: the text would change while typing.
    if (sameFilter(filter, sent.current)) return;
    sent.current = filter;
    setText(boxText(filter));
    setErrors([]);
  }, [filter]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const apply = (written: string, typing: boolean): void => {
    clearTimeout(timer.current);
    const parsed = parseFilter(written);
    setErrors(parsed.errors);
    if (typing && parsed.errors.length > 0) return;
    sent.current = parsed.filter;
    onFilter(parsed.filter, typing);
  };
  const onText = (written: string): void => {
    setText(written);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply(written, true), TYPING_MS);
  };
  const offer = (word: string): void => {
    const next = `${text.trim()} ${word}`.trim();
    setText(next);
    if (word.endsWith(":")) box.current?.focus();
    else apply(next, false);
  };
  const drop = (without: RunFilter): void => {
    sent.current = without;
    setText(boxText(without));
    setErrors([]);
    onFilter(without, false);
  };
  const chips = chipsOf(filter, prefs.value.zone);
  return (
    <search class="filter-bar">
      <form
        class="filter-box"
        onSubmit={(event) => {
          event.preventDefault();
          apply(text, false);
        }}
      >
        <Icon name="search" />
        <TextInput
          type="search"
          value={text}
          onText={onText}
          label="Search runs"
          placeholder="id, or workflow: status: label: since: is:failing"
          inputRef={box}
          onKeyDown={(event) => {
            if (event.key === "Escape") box.current?.blur();
          }}
        />
      </form>
      {errors.map((error) => (
        <p key={error.word} class="field-error" role="status">
          <code>{error.word}</code>: {error.message}.
        </p>
      ))}
      <div class="filter-chips">
        {chips.map((chip) => (
          <Chip key={chip.key} name={chip.label} onRemove={() => drop(chip.without)}>
            {chip.label}
          </Chip>
        ))}
        {chips.length > 1 && (
          <Button kind="quiet" onClick={() => drop(EVERY_RUN)}>
            Clear
          </Button>
        )}
        {OFFERED.map((key) => (
          <Button key={key} kind="quiet" class="filter-offer" title={hintOf(key)} onClick={() => offer(`${key}:`)}>
            + {key}
          </Button>
        ))}
        {FLAGS.filter((flag) => !text.includes(flag)).map((flag) => (
          <Button key={flag} kind="quiet" class="filter-offer" onClick={() => offer(flag)}>
            + {flag}
          </Button>
        ))}
      </div>
    </search>
  );
}

/** The text of the search box. */
function boxText(filter: RunFilter): string {
  return formatFilter(filter);
}

function hintOf(key: string): string {
  return FILTER_KEYS.find(([each]) => each === key)?.[1] ?? "";
}

interface ShortcutBarProps {
  readonly filter: RunFilter;
  readonly counts: ReadonlySignal<CountsView | null>;
}

/** The predefined filters, each with its count. */
export function ShortcutBar({ filter, counts: counted }: ShortcutBarProps) {
  const counts = counted.value;
  const lists: readonly (readonly [string, RunFilter, CountView | null])[] = [
    ["All runs", EVERY_RUN, null],
    ["In flight", shortcuts.inFlight, counts?.in_flight ?? null],
    ["Failing", shortcuts.failing, counts?.failing ?? null],
    ["Failed today", shortcuts.failedToday, counts?.failed ?? null],
    ["Waiting for a person", shortcuts.waitingForPerson, counts?.waiting ?? null],
    ["Paused", shortcuts.paused, counts?.paused ?? null],
  ];
  return (
    <nav class="shortcuts" aria-label="Lists">
      {lists.map(([name, each, count]) => (
        <A key={name} class="shortcut" href={href("/runs", filterToUrl(each))} current={sameFilter(filter, each)}>
          <span>{name}</span>
          <span class="shortcut-count">{count === null ? "" : countText(count)}</span>
        </A>
      ))}
    </nav>
  );
}

export function countText(count: CountView): string {
  return `${groupThousands(count.count)}${count.capped ? "+" : ""}`;
}
