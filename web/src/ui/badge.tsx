import { iconOf, wordOf, type StateName } from "../model/statuses";
import { Icon } from "./icon";

interface BadgeProps {
  readonly state: StateName;
  readonly word?: string;
  /** It waits for a child. */
  readonly child?: boolean;
}

/** A state as icon, word and colour, each sufficient on its own. */
export function Badge({ state, word, child = false }: BadgeProps) {
  return (
    <span class="badge" data-state={state}>
      <Icon name={iconOf(state, child)} />
      {word ?? wordOf(state)}
    </span>
  );
}
