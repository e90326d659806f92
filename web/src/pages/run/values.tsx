// Shows values as they are stored: with digits, key order and duplicates.
import { RawJson } from "../../model/json-text";
import { JsonTree } from "../../ui/json-tree";

/** Texts of at least this length have a search field. */
const FIND_FROM = 300;

/** The text of a payload of the API; null: there is none. */
export function textOf(payload: unknown): string | null {
  if (payload instanceof RawJson) return payload.text;
  return payload == null ? null : JSON.stringify(payload);
}

export function Value({ text, label }: { text: string; label: string }) {
  return <JsonTree key={text.length} text={text} find={text.length > FIND_FROM} label={label} />;
}
