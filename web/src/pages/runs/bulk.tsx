import { useEffect, useState } from "preact/hooks";
import { api, asProblem, type Problem } from "../../api/client";
import type { OperationView, PreviewView, RunView } from "../../api/types";
import { groupThousands } from "../../model/durations";
import { describeFilter, filterToBody, type RunFilter } from "../../model/filters";
import { awaitsChild, stateOfRun } from "../../model/statuses";
import { serverNow } from "../../state/clock";
import { notice } from "../../state/notices";
import { prefs } from "../../state/prefs";
import { href } from "../../state/route";
import { Badge } from "../../ui/badge";
import { ConfirmDialog, Dialog } from "../../ui/dialog";
import { ErrorBox } from "../../ui/error-box";
import { Field, TextInput } from "../../ui/field";
import { Skeleton } from "../../ui/skeleton";

export type BulkAction = PreviewView["action"];

/** The runs to change: selected one by one, or all that a filter matches. */
export interface BulkAsk {
  readonly action: BulkAction;
  readonly filter: RunFilter;
  readonly runs: readonly string[] | null;
}

interface ActionWords {
  readonly verb: string;
  readonly doing: string;
  readonly touches: string;
  readonly which: string;
  readonly danger: boolean;
}

export const BULK: Readonly<Record<BulkAction, ActionWords>> = {
  cancel: {
    verb: "Cancel",
    doing: "Cancelling",
    touches: "The runs are asked to stop. Their code can clean up, and their children are cancelled too.",
    which: "that have not ended",
    danger: true,
  },
  terminate: {
    verb: "Terminate",
    doing: "Terminating",
    touches: "The runs end immediately, without cleanup.",
    which: "that have not ended",
    danger: true,
  },
  retry: {
    verb: "Retry",
    doing: "Retrying",
    touches: "The runs continue from the step that failed. Earlier results are kept.",
    which: "that failed",
    danger: false,
  },
  resume: { verb: "Resume", doing: "Resuming", touches: "The runs continue where they were paused.", which: "that are paused", danger: false },
  delete: {
    verb: "Delete",
    doing: "Deleting",
    touches: "The runs and their history are deleted permanently. This cannot be undone.",
    which: "that have ended",
    danger: true,
  },
};

/** More runs than these need a typed confirmation. */
const TYPED_ABOVE = 100;

type Preview = { readonly body: Readonly<Record<string, unknown>>; readonly answer: PreviewView };

/** Shows the affected runs before an operation can begin. The server checks that the request matches what was shown. */
export function BulkDialog({ ask, onClose, onDone }: { ask: BulkAsk; onClose: () => void; onDone: () => void }) {
  const words = BULK[ask.action];
  const [preview, setPreview] = useState<Preview | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [tried, setTried] = useState(0);
  const [reason, setReason] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    const where = ask.runs === null ? filterToBody(ask.filter, serverNow()) : { run: ask.runs };
    const body = { action: ask.action, filter: narrowed(ask) && ask.action === "delete" ? { ...where, status: ENDED } : where };
    setProblem(null);
    api
      .send<PreviewView>("POST", "/operations", { ...body, dry_run: true }, { abort: abort.signal })
      .then((answer) => setPreview({ body, answer }))
      .catch((error: unknown) => {
        if (!abort.signal.aborted) setProblem(asProblem(error));
      });
    return () => abort.abort();
  }, [tried]);
  const title = `${words.verb} runs`;
  if (problem !== null || preview === null) {
    return (
      <Dialog title={title} onClose={onClose}>
        {problem === null ? (
          <Skeleton rows={6} label="Finding the matching runs" />
        ) : (
          <ErrorBox problem={problem} onRetry={() => setTried(tried + 1)} />
        )}
      </Dialog>
    );
  }
  const { body, answer } = preview;
  const begin = async (key: string): Promise<void> => {
    const sent = { ...body, reason, filter_digest: answer.filter_digest };
    const operation = await api.send<OperationView>("POST", "/operations", sent, { key });
    notice(`${words.doing} ${countWords(answer)} in the background`, {
      href: href(`/operations/${operation.operation_id}`),
    });
    onDone();
  };
  const typed = answer.count > TYPED_ABOVE || answer.capped ? typedCount(answer) : undefined;
  return (
    <ConfirmDialog
      title={title}
      verb={`${words.verb} ${countWords(answer)}`}
      danger={words.danger}
      disabled={answer.count === 0}
      onConfirm={begin}
      onClose={onClose}
      {...(typed === undefined ? {} : { typed })}
      touches={<Touches ask={ask} answer={answer} />}
    >
      <Field label="Reason" help="Stored with the operation, and with each run that it cancels or terminates.">
        <TextInput value={reason} onText={setReason} />
      </Field>
    </ConfirmDialog>
  );
}

const ENDED = ["completed", "failed", "cancelled"];

/** Without a status, only runs that the action applies to are affected. */
function narrowed(ask: BulkAsk): boolean {
  return ask.runs !== null || ask.filter.status.length === 0;
}

function Touches({ ask, answer }: { readonly ask: BulkAsk; readonly answer: PreviewView }) {
  const words = BULK[ask.action];
  return (
    <>
      <p class="bulk-count">
        <strong>{countWords(answer)}</strong>
        {answer.count === 0 && " match. There is nothing to do."}
      </p>
      <p class="bulk-filter">
        {ask.runs === null ? describeFilter(ask.filter, prefs.value.zone) : `${runWords(ask.runs.length)} that you selected`}
        {narrowed(ask) && `, only those ${words.which}`}
      </p>
      <p>{words.touches}</p>
      {answer.samples.length > 0 && <Samples runs={answer.samples} all={answer.count} />}
    </>
  );
}

function Samples({ runs, all }: { readonly runs: readonly RunView[]; readonly all: number }) {
  return (
    <>
      <p class="dim">{runs.length < all ? `The newest ${runs.length}:` : "All of them:"}</p>
      <ul class="bulk-samples">
        {runs.map((run) => (
          <li key={run.run_id} data-run={run.run_id}>
            <Badge state={stateOfRun(run)} child={awaitsChild(run)} />
            <span>{run.workflow}</span>
            <span class="mono">{run.workflow_id}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function countWords(answer: PreviewView): string {
  return answer.capped ? `${groupThousands(answer.count)}+ runs` : runWords(answer.count);
}

function runWords(count: number): string {
  return `${groupThousands(count)} ${count === 1 ? "run" : "runs"}`;
}

/** Without the thin space, which users cannot type. */
function typedCount(answer: PreviewView): string {
  return `${answer.count}${answer.capped ? "+" : ""}`;
}
