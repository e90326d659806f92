import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Paged, RunView } from "../api/types";
import { href, segment } from "../state/route";
import { useWorkflowNames } from "../state/workflow-names";
import { Dialog } from "../ui/dialog";
import { shortcuts, Keys } from "../ui/shortcuts";
import { surroundings } from "../ui/surroundings";
import { SECTIONS } from "./sections";

interface Entry {
  readonly id: string;
  readonly label: string;
  readonly kind: string;
  readonly keys?: string;
  readonly act: () => void;
}

const MOST = 40;
const SEARCH_MS = 150;

/** Searches pages, workflow types, runs by the beginning of their ids, and actions. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const types = useWorkflowNames(true);
  const runs = useRuns(text.trim());
  const entries = useMemo(() => [...known(types, text), ...runs.map(runEntry)].slice(0, MOST), [types, runs, text]);
  const chosen = entries[Math.min(at, entries.length - 1)];
  const act = (entry: Entry | undefined): void => {
    if (!entry) return;
    onClose();
    // after the dialog has restored the focus
    setTimeout(entry.act, 0);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((was) => (Math.min(was, entries.length - 1) + step + entries.length) % Math.max(1, entries.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      act(chosen);
    }
  };
  return (
    <Dialog title="Search" onClose={onClose} class="palette">
      <input
        class="input palette-input"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={chosen ? `${list}-${chosen.id}` : undefined}
        aria-label="Pages, workflows, run ids, actions"
        placeholder="Page, workflow, run id or action"
        autocomplete="off"
        spellcheck={false}
        value={text}
        autoFocus
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <ul class="palette-list" role="listbox" id={list} aria-label="Results">
        {entries.map((entry) => (
          <Option key={entry.id} entry={entry} id={`${list}-${entry.id}`} selected={entry === chosen} onPick={act} />
        ))}
      </ul>
      {entries.length === 0 && <p class="dim">No match. Runs are found by the beginning of their id.</p>}
    </Dialog>
  );
}

interface OptionProps {
  readonly entry: Entry;
  readonly id: string;
  readonly selected: boolean;
  readonly onPick: (entry: Entry) => void;
}

function Option({ entry, id, selected, onPick }: OptionProps) {
  const ref = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (selected) ref.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  return (
    <li ref={ref} id={id} role="option" aria-selected={selected} class="palette-entry" onClick={() => onPick(entry)}>
      <span class="palette-label">{entry.label}</span>
      <span class="dim">{entry.keys ? <Keys keys={entry.keys} /> : entry.kind}</span>
    </li>
  );
}

function goTo(path: string): () => void {
  return () => surroundings.go(href(path));
}

function known(types: readonly string[], text: string): Entry[] {
  const all: Entry[] = [
    ...SECTIONS.map((each) => ({ id: each.id, label: each.label, kind: "page", act: goTo(each.path) })),
    ...shortcuts.peek().filter(isAction).map(actionEntry),
    ...types.flatMap((type) => [
      { id: `type-${type}`, label: type, kind: "workflow", act: goTo(`/workflows/${segment(type)}`) },
      { id: `start-${type}`, label: `Start ${type}`, kind: "action", act: goTo(`/workflows/${segment(type)}/start`) },
    ]),
  ];
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return all.filter((each) => words.every((word) => each.label.toLowerCase().includes(word)));
}

/** Excludes shortcuts that move the focus or open a page. */
function isAction(each: { readonly group: string; readonly keys: string }): boolean {
  return each.group !== "Everywhere" && !/^(j|k|Arrow.*|Enter|Escape|Home|End)$/.test(each.keys);
}

function actionEntry(each: (typeof shortcuts.value)[number], at: number): Entry {
  const event = new KeyboardEvent("keydown", { key: each.keys });
  return {
    id: `action-${at}`,
    label: each.label,
    kind: "action",
    keys: each.keys,
    act: () => void each.handler(event),
  };
}

function runEntry(run: RunView): Entry {
  return {
    id: `run-${run.run_id}`,
    label: `${run.workflow} ${run.workflow_id}`,
    kind: `run, ${run.status}`,
    act: goTo(`/runs/${segment(run.run_id)}`),
  };
}

function useRuns(prefix: string): readonly RunView[] {
  const [runs, setRuns] = useState<readonly RunView[]>([]);
  useEffect(() => {
    if (prefix.length < 2) {
      setRuns([]);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api
        .get<Paged<RunView>>("/runs", { id_prefix: prefix, size: 10 }, { abort: abort.signal })
        .then((page) => setRuns(page.rows))
        .catch(() => {});
    }, SEARCH_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [prefix]);
  return runs;
}
