import { formatTime } from "../model/times";
import { Button } from "./button";
import { Icon } from "./icon";
import { surroundings } from "./surroundings";

interface DisconnectedProps {
  /** When the server responded last, by its clock. */
  readonly since: number;
  /** When the next retry is due, by the same clock. */
  readonly retryAt: number;
  readonly onRetry: () => void;
}

/** The bar shown while the data are outdated. Screen readers read the first sentence once, not the countdown. */
export function Disconnected({ since, retryAt, onRetry }: DisconnectedProps) {
  const left = Math.max(0, Math.ceil((retryAt - surroundings.second.value) / 1000));
  return (
    <div class="disconnected">
      <Icon name="warning" />
      <span role="status">
        The server is not responding. You are seeing the state at {formatTime(since, surroundings.zone.value, "time")}.
      </span>
      <span class="dim" aria-hidden="true">
        {left > 0 ? `Retrying in ${left}s` : "Retrying…"}
      </span>
      <Button local onClick={onRetry}>
        Try now
      </Button>
    </div>
  );
}
