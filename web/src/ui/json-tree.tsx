import { useMemo, useState } from "preact/hooks";
import {
  findInJson,
  isJsonError,
  nodeText,
  parseJsonText,
  pathOf,
  scalarText,
  type JsonNode,
} from "../model/json-text";
import { OuterLink } from "./a";
import { Button } from "./button";
import { Copy } from "./copy";
import { TextInput } from "./field";
import { Icon } from "./icon";

interface JsonTreeProps {
  readonly text: string;
  /** Shows a search field. */
  readonly find?: boolean;
  readonly label?: string;
}

const ON_DEMAND = 256 * 1024;
const CHILDREN_AT_ONCE = 100;
/** How much is initially expanded. */
const OPEN_CHARACTERS = 4000;

/** A value as it is stored: with its digits, key order and duplicate keys. All of it is text. */
export function JsonTree({ text, find, label }: JsonTreeProps) {
  const [wanted, setWanted] = useState(text.length <= ON_DEMAND);
  const [needle, setNeedle] = useState("");
  const root = useMemo(() => (wanted ? parseJsonText(text) : null), [text, wanted]);
  const hits = useMemo(
    () => (root !== null && !isJsonError(root) && needle !== "" ? findInJson(root, text, needle) : []),
    [root, text, needle],
  );
  if (root === null) {
    return (
      <div class="json">
        <Button local onClick={() => setWanted(true)}>
          Show {Math.round(text.length / 1024)} KiB
        </Button>{" "}
        <Copy text={text} label="Copy all" wide kind="plain" />
      </div>
    );
  }
  if (isJsonError(root)) return <pre class="json json-plain">{text}</pre>;
  const open = openOf(hits);
  return (
    <div class="json" role="group" aria-label={label ?? "Value"}>
      <div class="json-tools">
        {find && (
          <TextInput type="search" value={needle} onText={setNeedle} placeholder="Find" label="Find in the value" />
        )}
        {needle !== "" && <span class="dim">{hits.length} found</span>}
        <Copy text={text} label="Copy all" />
      </div>
      <Node node={root} text={text} open={open} hits={new Set(hits)} level={0} />
    </div>
  );
}

/** What must be expanded to show the matches. */
function openOf(hits: readonly JsonNode[]): ReadonlySet<JsonNode> {
  const open = new Set<JsonNode>();
  for (const hit of hits) for (let at = hit.parent; at !== null; at = at.parent) open.add(at);
  return open;
}

interface NodeProps {
  readonly node: JsonNode;
  readonly text: string;
  readonly open: ReadonlySet<JsonNode>;
  readonly hits: ReadonlySet<JsonNode>;
  readonly level: number;
}

function Node({ node, text, open, hits, level }: NodeProps) {
  const small = node.end - node.start <= OPEN_CHARACTERS;
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [most, setMost] = useState(CHILDREN_AT_ONCE);
  const children = node.children;
  const found = hits.has(node) ? "json-hit" : "";
  const name = node.key === undefined ? null : <span class={`json-key ${found}`}>{JSON.stringify(node.key)}: </span>;
  const tools = <Tools node={node} text={text} />;
  if (children === undefined || children.length === 0) {
    return (
      <div class="json-line">
        {name}
        <Scalar node={node} text={text} found={found} />
        {tools}
      </div>
    );
  }
  const expanded = open.has(node) || (chosen ?? (level < 1 || small));
  const [left, right] = node.kind === "array" ? ["[", "]"] : ["{", "}"];
  const what = `${children.length} ${node.kind === "array" ? "item" : "key"}${children.length === 1 ? "" : "s"}`;
  return (
    <div class="json-node">
      <div class="json-line">
        <button
          type="button"
          class="json-toggle"
          aria-expanded={expanded}
          aria-label={`${node.key ?? "value"}, ${what}`}
          onClick={() => setChosen(!expanded)}
        >
          <Icon name={expanded ? "chevron-down" : "chevron-right"} />
        </button>
        {name}
        <span class="json-mark">{expanded ? left : `${left} … ${right}`}</span>
        {!expanded && <span class="dim"> {what}</span>}
        {tools}
      </div>
      {expanded && (
        <>
          <div class="json-children">
            {children.slice(0, most).map((child) => (
              <Node key={child.index} node={child} text={text} open={open} hits={hits} level={level + 1} />
            ))}
            {children.length > most && (
              <Button local kind="quiet" onClick={() => setMost(most + 10 * CHILDREN_AT_ONCE)}>
                {children.length - most} more
              </Button>
            )}
          </div>
          <span class="json-mark">{right}</span>
        </>
      )}
    </div>
  );
}

function Scalar({ node, text, found }: { readonly node: JsonNode; readonly text: string; readonly found: string }) {
  const shown = nodeText(node, text);
  const value = node.kind === "string" ? scalarText(node, text) : "";
  return (
    <span class={`json-${node.kind} ${found}`}>
      {/^https?:\/\/\S+$/i.test(value) ? <OuterLink href={value}>{shown}</OuterLink> : shown}
    </span>
  );
}

function Tools({ node, text }: { readonly node: JsonNode; readonly text: string }) {
  return (
    <span class="json-line-tools">
      <Copy text={() => (node.kind === "string" ? scalarText(node, text) : nodeText(node, text))} label="Copy value" />
      {node.parent !== null && <Copy text={() => pathOf(node)} label={`Copy path ${pathOf(node)}`} />}
    </span>
  );
}
