import type { QueueView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { msOrNull } from "../../model/times";
import { href, segment } from "../../state/route";
import { A } from "../../ui/a";
import { CodeBlock } from "../../ui/code-block";
import { Icon } from "../../ui/icon";
import { Since } from "../../ui/time";

/** A banner for each type with waiting runs and no worker. */
export function WaitingBanners({ queues }: { readonly queues: readonly QueueView[] }) {
  return (
    <>
      {queues
        .filter((queue) => queue.waiting > 0 && queue.workers === 0)
        .map((queue) => (
          <Banner key={`${queue.workflow} ${queue.version ?? ""}`} queue={queue} />
        ))}
    </>
  );
}

function Banner({ queue }: { readonly queue: QueueView }) {
  const since = msOrNull(queue.oldest_waiting_since);
  return (
    <div class="banner" data-state="failed" role="status">
      <Icon name="warning" />
      <span>
        {groupThousands(queue.waiting)} {queue.waiting === 1 ? "run" : "runs"} of{" "}
        <A href={href(`/workflows/${segment(queue.workflow)}`)}>{queue.workflow}</A>
        {queue.version !== null && ` v${queue.version}`} {queue.waiting === 1 ? "is" : "are"} waiting, and no worker serves
        it
        {since !== null && (
          <>
            . The oldest became ready <Since ms={since} />
          </>
        )}
        .
      </span>
      <CodeBlock text="kagzi worker app.py" copy />
    </div>
  );
}
