import type { Field } from "../../model/schema-form";

/** A signal that is answered by yes or no: its two values as JSON, and what they are called. */
export interface TwoButtons {
  readonly yes: string;
  readonly no: string;
  readonly yesWord: string;
  readonly noWord: string;
}

const APPROVAL = /approv|accept|allow|confirm|release|agree/i;

/** Of one boolean, alone or as the only field of an object. Null: it is something else. */
export function twoButtonsOf(field: Field, signal: string): TwoButtons | null {
  if (isYesOrNo(field)) return named("true", "false", signal);
  if (field.kind !== "object" || field.nullable) return null;
  const [only, ...others] = field.properties;
  if (only === undefined || others.length > 0 || !isYesOrNo(only.field)) return null;
  const name = JSON.stringify(only.name);
  return named(`{${name}: true}`, `{${name}: false}`, `${signal} ${only.name}`);
}

function isYesOrNo(field: Field): boolean {
  return field.kind === "boolean" && !field.nullable;
}

function named(yes: string, no: string, about: string): TwoButtons {
  const approval = APPROVAL.test(about);
  return { yes, no, yesWord: approval ? "Approve" : "Yes", noWord: approval ? "Decline" : "No" };
}
