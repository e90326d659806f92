import { iconOf, wordOf, type StateName } from "../model/statuses";
import { Icon } from "./icon";

/** A state: icon, word and hue, so that none of them is needed to tell it. */
export function Badge({ state, word }: { readonly state: StateName; readonly word?: string }) {
  return (
    <span class="badge" data-state={state}>
      <Icon name={iconOf(state)} />
      {word ?? wordOf(state)}
    </span>
  );
}
