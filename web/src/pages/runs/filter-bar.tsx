import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
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
import { lastWord, type Suggestion, suggestionsFor } from "../../model/filter-suggestions";
import { prefs } from "../../state/prefs";
import { href } from "../../state/route";
import { useWorkflowNames } from "../../state/workflow-names";
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
  const suggest = useSuggestions(text, (word) => take(word));
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
    setErrors(typing ? parsed.errors.filter((error) => !isBeingTyped(error, written)) : parsed.errors);
    if (parsed.errors.length > 0) return;
    sent.current = parsed.filter;
    onFilter(parsed.filter, typing);
  };
  const onText = (written: string): void => {
    setText(written);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply(written, true), TYPING_MS);
  };
  const write = (next: string): void => {
    setText(next);
    setErrors([]);
    box.current?.focus();
    if (!next.endsWith(":")) apply(next, false);
  };
  const offer = (word: string): void => write(`${text.trim()} ${word}`.trim());
  const take = (word: string): void => write(lastWord(text)[0] + word);
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
          // what has only one meaning is completed
          const [only, ...more] = suggest.all;
          if (only !== undefined && more.length === 0 && parseFilter(text).errors.length > 0) take(only.word);
          else apply(text, false);
          suggest.close();
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
          suggestions={suggest.attributes}
          onFocus={suggest.open}
          onBlur={suggest.close}
          onKeyDown={(event) => {
            if (!suggest.onKey(event) && event.key === "Escape") box.current?.blur();
          }}
        />
        {suggest.attributes.open && <Suggestions {...suggest} />}
      </form>
      {errors.length > 0 && (
        <div role="status">
          {errors.map((error) => (
            <p key={error.word} class="field-error">
              <code>{error.word}</code>: {error.message}.
            </p>
          ))}
          <p class="dim">The list below still has the filter from before.</p>
        </div>
      )}
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

/** Whether it is about the last word, which is not finished. */
function isBeingTyped(error: FilterError, written: string): boolean {
  const [, last] = lastWord(written);
  return last !== "" && error.word.endsWith(last);
}

/** The suggestions for the word that is being typed, and the keys to choose one. */
function useSuggestions(text: string, onTake: (word: string) => void) {
  const [focused, setFocused] = useState(false);
  // which one is chosen; it is of that text only
  const [choice, setChoice] = useState({ text: "", at: -1 });
  const list = useId();
  const names = useWorkflowNames(focused);
  const all = suggestionsFor(text, names);
  const at = choice.text === text ? choice.at : -1;
  const isOpen = focused && all.length > 0;
  const chosen = isOpen ? all[at] : undefined;
  const onKey = (event: KeyboardEvent): boolean => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && all.length > 0) {
      setFocused(true);
      setChoice({ text, at: at < 0 && step < 0 ? all.length - 1 : (at + step + all.length) % all.length });
    } else if (event.key === "Enter" && chosen !== undefined) onTake(chosen.word);
    else if (event.key === "Escape" && isOpen) setFocused(false);
    else return false;
    event.preventDefault();
    return true;
  };
  const attributes = { list, open: isOpen, chosen: chosen && `${list}-${at}` };
  return { all, chosen, attributes, onKey, onTake, open: () => setFocused(true), close: () => setFocused(false) };
}

function Suggestions({ all, chosen, attributes, onTake }: ReturnType<typeof useSuggestions>) {
  return (
    <ul class="filter-suggestions" role="listbox" id={attributes.list} aria-label="Suggestions">
      {all.map((each: Suggestion, index) => (
        <li
          key={each.word}
          id={`${attributes.list}-${index}`}
          role="option"
          aria-selected={each === chosen}
          onPointerDown={(event) => {
            event.preventDefault(); // the box keeps the focus
            onTake(each.word);
          }}
        >
          <code>{each.word}</code> <span class="dim">{each.hint}</span>
        </li>
      ))}
    </ul>
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
