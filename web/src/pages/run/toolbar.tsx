// Filters for steps, and the zoom.
import type { StepKind } from "../../model/records";
import { setQuery } from "../../state/route";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Select, TextInput } from "../../ui/field";
import { useShortcut } from "../../ui/shortcuts";
import { useRef } from "preact/hooks";
import { STEP_KINDS, toggleFolding, view } from "./view";

const KIND_WORDS: Readonly<Record<StepKind, string>> = {
  function: "Functions",
  sleep: "Sleeps",
  signal: "Signals",
  child: "Children",
  race: "Races",
  patch: "Patches",
};

interface ToolbarProps {
  /** How many steps are shown: `12 of 20,000 steps`. */
  count: string;
  failures: number;
  live: boolean;
  following: boolean;
  onFollow: () => void;
  onZoom: (factor: number) => void;
  onNextFailure: (direction: 1 | -1) => void;
}

export function Toolbar(props: ToolbarProps) {
  const { text, failed, slow, kind, folding, zoom } = view.value;
  const box = useRef<HTMLInputElement>(null);
  useShortcut("/", "Filter the steps", () => box.current?.focus());
  return (
    <div class="timeline-tools" role="toolbar" aria-label="Filter and zoom">
      <TextInput
        type="search"
        inputRef={box}
        value={text}
        onText={(q) => setQuery({ q: q === "" ? null : q }, { replace: true })}
        label="Filter steps by name"
        placeholder="Filter steps"
      />
      <Chip selected={failed} onClick={() => setQuery({ only: failed ? null : "failed" }, { replace: true })}>
        Failed
      </Chip>
      <Chip selected={slow} onClick={() => setQuery({ only: slow ? null : "slow" }, { replace: true })}>
        Slowest 5%
      </Chip>
      <Select
        label="Kind of step"
        value={kind}
        onSelect={(value) => setQuery({ kind: value === "" ? null : value }, { replace: true })}
        options={[
          { value: "", label: "All except patches" },
          { value: "all", label: "All kinds" },
          ...STEP_KINDS.map((each) => ({ value: each, label: KIND_WORDS[each] })),
        ]}
      />
      <span class="dim timeline-count">{props.count}</span>
      <span class="timeline-zoom">
        {props.failures > 0 ? (
          <Button
            local
            onClick={() => props.onNextFailure(1)}
            title="Next failure (!)"
            icon="cross"
          >{`${props.failures} failed`}</Button>
        ) : null}
        <Button local label="Zoom out" title="Zoom out (-)" onClick={() => props.onZoom(1 / 2)}>
          −
        </Button>
        <Button local label="Zoom in" title="Zoom in (+)" onClick={() => props.onZoom(2)}>
          +
        </Button>
        <Button local title="Reset zoom (0)" disabled={zoom === null} onClick={() => props.onZoom(0)}>
          All
        </Button>
        <Button local pressed={!folding} title="Draw idle time to scale (z)" onClick={toggleFolding}>
          To scale
        </Button>
        {props.live ? (
          <Button local pressed={props.following} title="Keep the newest step in view (f)" onClick={props.onFollow}>
            Follow
          </Button>
        ) : null}
      </span>
    </div>
  );
}
