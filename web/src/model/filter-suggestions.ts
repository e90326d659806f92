// What the search box suggests for the word that is being typed.
import { FLAG_FIELDS, RUN_STATUSES } from "./filter-fields";
import { FILTER_KEYS, quote, splitWords } from "./filter-text";

export interface Suggestion {
  /** The word, whole. */
  readonly word: string;
  readonly hint: string;
}

const MOST = 8;
const TIMES: readonly (readonly [string, string])[] = [
  ["1h", "the last hour"],
  ["24h", "the last day"],
  ["7d", "the last week"],
];

/** The last word of a text, with what is before it. An unfinished quoted value belongs to the word. */
export function lastWord(text: string): readonly [string, string] {
  const last = splitWords(text).at(-1) ?? "";
  return text.endsWith(last) ? [text.slice(0, text.length - last.length), last] : [text, ""];
}

/** Nothing for an empty word, and for one that is complete. */
export function suggestionsFor(text: string, workflows: readonly string[]): readonly Suggestion[] {
  const [, word] = lastWord(text);
  if (word === "") return [];
  const colon = word.indexOf(":");
  if (colon < 0) return keysLike(word.toLowerCase());
  const key = word.slice(0, colon).toLowerCase();
  const list = word.slice(colon + 1);
  const comma = key === "status" ? list.lastIndexOf(",") + 1 : 0;
  const written = list.slice(comma).replace(/^"|"$/g, "").toLowerCase();
  const begin = `${key}:${list.slice(0, comma)}`;
  return valuesOf(key, workflows)
    .filter(([value]) => value.toLowerCase().startsWith(written))
    .map(([value, hint]) => ({ word: begin + quote(value), hint }))
    .filter((each) => each.word !== word)
    .slice(0, MOST);
}

function keysLike(written: string): Suggestion[] {
  const keys = FILTER_KEYS.filter(([key]) => key.startsWith(written)).map(([key, hint]) => ({ word: `${key}:`, hint }));
  const statuses = RUN_STATUSES.filter((status) => status.startsWith(written));
  return [...keys, ...statuses.map((status) => ({ word: `status:${status}`, hint: "status" }))].slice(0, MOST);
}

function valuesOf(key: string, workflows: readonly string[]): readonly (readonly [string, string])[] {
  switch (key) {
    case "status":
      return RUN_STATUSES.map((status) => [status, ""]);
    case "is":
    case "not":
      return FLAG_FIELDS.map((flag) => [flag, ""]);
    case "workflow":
    case "type":
      return workflows.map((name) => [name, ""]);
    case "since":
    case "ended_since":
      return TIMES;
    case "order":
      return [
        ["created", "newest first"],
        ["ended", "latest end first"],
      ];
    default:
      return [];
  }
}
