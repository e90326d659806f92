// The differences between two texts, and between two JSON values.
import { isJsonError, type JsonNode, nodeText, parseJsonText } from "./json-text";

export interface DiffLine {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  /** Its line number in the first and in the second text, from 1; 0 if it is missing there. */
  readonly a: number;
  readonly b: number;
}

/** With more differing lines, all of them are shown as different: the shortest diff has quadratic cost. */
const MOST_EDITS = 2_000;

/** The minimal lines to remove and add (Myers, 1986). */
export function diffLines(a: string, b: string): DiffLine[] {
  const left = a.split("\n");
  const right = b.split("\n");
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1;
  let tail = 0;
  const most = Math.min(left.length, right.length) - head;
  while (tail < most && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail += 1;
  const lines: DiffLine[] = [];
  const same = (from: number, to: number, shift: number) => {
    for (let at = from; at < to; at += 1) {
      lines.push({ kind: "same", text: left[at] ?? "", a: at + 1, b: at + 1 + shift });
    }
  };
  same(0, head, 0);
  const middle = edits(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  for (const line of middle) lines.push({ ...line, a: line.a && line.a + head, b: line.b && line.b + head });
  same(left.length - tail, left.length, right.length - left.length);
  return lines;
}

function edits(left: readonly string[], right: readonly string[]): DiffLine[] {
  const most = Math.min(left.length + right.length, MOST_EDITS);
  const furthest = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let count = 0; count <= most; count += 1) {
    history.push(new Map(furthest));
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      let x = reached(furthest, diagonal, count);
      while (x < left.length && x - diagonal < right.length && left[x] === right[x - diagonal]) x += 1;
      furthest.set(diagonal, x);
      if (x >= left.length && x - diagonal >= right.length) return trace(left, right, history, count);
    }
  }
  return [
    ...left.map((text, at): DiffLine => ({ kind: "removed", text, a: at + 1, b: 0 })),
    ...right.map((text, at): DiffLine => ({ kind: "added", text, a: 0, b: at + 1 })),
  ];
}

/** The furthest point on a diagonal after one more edit. */
function reached(furthest: ReadonlyMap<number, number>, diagonal: number, count: number): number {
  const above = furthest.get(diagonal + 1) ?? -1;
  const before = furthest.get(diagonal - 1) ?? -1;
  return diagonal === -count || (diagonal !== count && before < above) ? above : before + 1;
}

function trace(
  left: readonly string[],
  right: readonly string[],
  history: readonly ReadonlyMap<number, number>[],
  count: number,
): DiffLine[] {
  const lines: DiffLine[] = [];
  let x = left.length;
  let y = right.length;
  for (let edit = count; edit >= 0; edit -= 1) {
    const furthest = history[edit] as ReadonlyMap<number, number>;
    const diagonal = x - y;
    const above = furthest.get(diagonal + 1) ?? -1;
    const before = furthest.get(diagonal - 1) ?? -1;
    const down = diagonal === -edit || (diagonal !== edit && before < above);
    const fromX = edit === 0 ? 0 : down ? above : before;
    const fromY = edit === 0 ? 0 : fromX - (down ? diagonal + 1 : diagonal - 1);
    while (x > fromX && y > fromY && left[x - 1] === right[y - 1]) {
      lines.push({ kind: "same", text: left[x - 1] ?? "", a: x, b: y });
      x -= 1;
      y -= 1;
    }
    if (edit === 0) break;
    if (down) lines.push({ kind: "added", text: right[fromY] ?? "", a: 0, b: fromY + 1 });
    else lines.push({ kind: "removed", text: left[fromX] ?? "", a: fromX + 1, b: 0 });
    x = fromX;
    y = fromY;
  }
  return lines.reverse();
}

// --- JSON ------------------------------------------------------------------------------------------------------------

export interface JsonDifference {
  readonly path: string;
  readonly kind: "added" | "removed" | "changed";
  /** As they are in the texts; empty where missing. */
  readonly before: string;
  readonly after: string;
}

const MOST_DIFFERENCES = 1_000;

/** Values that differ. Members are paired by key, the second `a` with the second `a`; items by index. The order of
 * members is ignored, digits are not: 1.0 is not 1. Texts that are not JSON differ as a whole. */
export function diffJson(a: string, b: string): JsonDifference[] {
  const left = parseJsonText(a);
  const right = parseJsonText(b);
  if (isJsonError(left) || isJsonError(right)) {
    return a === b ? [] : [{ path: "", kind: "changed", before: a, after: b }];
  }
  const found: JsonDifference[] = [];
  const waiting: [JsonNode | null, JsonNode | null][] = [[left, right]];
  for (let pair = waiting.pop(); pair && found.length < MOST_DIFFERENCES; pair = waiting.pop()) {
    const [one, other] = pair;
    if (one && other && one.kind === other.kind && one.children && other.children) {
      waiting.push(...pairsOf(one.children, other.children).reverse());
      continue;
    }
    const before = one ? nodeText(one, a) : "";
    const after = other ? nodeText(other, b) : "";
    if (one && other && before === after) continue;
    const path = (one ?? other)?.path ?? "";
    found.push({ path, kind: !one ? "added" : !other ? "removed" : "changed", before, after });
  }
  return found;
}

function pairsOf(left: readonly JsonNode[], right: readonly JsonNode[]): [JsonNode | null, JsonNode | null][] {
  const named = (nodes: readonly JsonNode[]) => {
    const seen = new Map<string, number>();
    return new Map(
      nodes.map((node) => {
        const key = node.key ?? "";
        const nth = (seen.get(key) ?? 0) + 1;
        seen.set(key, nth);
        return [`${nth}:${key}`, node] as const;
      }),
    );
  };
  const others = named(right);
  const pairs: [JsonNode | null, JsonNode | null][] = [];
  for (const [name, node] of named(left)) {
    pairs.push([node, others.get(name) ?? null]);
    others.delete(name);
  }
  for (const node of others.values()) pairs.push([null, node]);
  return pairs;
}
