import type { Field } from "../../model/schema-form";

/** A signal that is answered with yes or no: its two values as JSON, and their labels. */
export interface TwoButtons {
  readonly yes: string;
  readonly no: string;
  readonly yesWord: string;
  readonly noWord: string;
  /** The field that they set, if there are others to fill in; null: they are the whole answer. */
  readonly field: string | null;
}

const APPROVAL = /approv|accept|allow|confirm|release|agree/i;

/** For a single boolean, alone or as the only one of an object; beside other fields it must be about an approval. Null
 * otherwise. */
export function twoButtonsOf(field: Field, signal: string): TwoButtons | null {
  if (isYesOrNo(field)) return named("true", "false", signal, null);
  if (field.kind !== "object" || field.nullable) return null;
  const [only, ...others] = field.properties.filter((each) => isYesOrNo(each.field));
  if (only === undefined || others.length > 0) return null;
  if (field.properties.length > 1) return APPROVAL.test(only.name) ? named("true", "false", only.name, only.name) : null;
  const name = JSON.stringify(only.name);
  return named(`{${name}: true}`, `{${name}: false}`, `${signal} ${only.name}`, null);
}

function isYesOrNo(field: Field): boolean {
  return field.kind === "boolean" && !field.nullable;
}

function named(yes: string, no: string, about: string, field: string | null): TwoButtons {
  const approval = APPROVAL.test(about);
  return { yes, no, field, yesWord: approval ? "Approve" : "Yes", noWord: approval ? "Decline" : "No" };
}
