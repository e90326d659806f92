// All attempts of a step, with a comparison of two of them.
import { useState } from "preact/hooks";
import type { ErrorView, StepView } from "../../api/types";
import { diffLines } from "../../model/diff";
import { formatDuration } from "../../model/durations";
import { pretty } from "../../model/json-text";
import { toMs } from "../../model/times";
import { Diff } from "../../ui/diff";
import { Time } from "../../ui/time";
import { ErrorText, wholeText } from "./errors";
import { textOf, Value } from "./values";
import { Countdown } from "./why";

interface Attempt {
  key: string;
  attempt: number;
  started: number | null;
  finished: number | null;
  worker: string | null;
  error: ErrorView | null;
  word: string;
  /** Its arguments, if they are recorded. */
  input: string | null;
  /** The run was retried since, and its attempts are counted from the beginning. */
  beforeRetry: boolean;
}

export function Attempts({ step }: { step: StepView }) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const attempts = attemptsOf(step);
  const two = chosen.length === 2 ? attempts.filter((each) => chosen.includes(each.key)) : [];
  const toggle = (key: string) =>
    setChosen(chosen.includes(key) ? chosen.filter((each) => each !== key) : [...chosen, key].slice(-2));
  return (
    <div class="attempts">
      <table>
        <thead>
          <tr>
            <th>
              <span class="visually-hidden">Compare</span>
            </th>
            <th>try</th>
            <th>result</th>
            <th class="num">waited</th>
            <th class="num">took</th>
          </tr>
        </thead>
        <tbody>
          {attempts.map((each, index) => (
            <AttemptRow
              key={each.key}
              attempt={each}
              previous={attempts[index - 1]}
              chosen={chosen.includes(each.key)}
              onChoose={attempts.length > 1 ? () => toggle(each.key) : null}
            />
          ))}
        </tbody>
      </table>
      {step.retry_at !== null && step.status === "pending" ? (
        <p class="dim">
          {`Attempt ${step.attempt} at `}
          <Countdown at={step.retry_at} />
        </p>
      ) : null}
      {attempts.length > 1 && two.length < 2 ? <p class="dim">Choose two to see what differs.</p> : null}
      {two.length === 2 && two[0] && two[1] ? <AttemptDiff a={two[0]} b={two[1]} /> : null}
    </div>
  );
}

function AttemptRow(props: {
  attempt: Attempt;
  previous: Attempt | undefined;
  chosen: boolean;
  onChoose: (() => void) | null;
}) {
  const { attempt, previous, chosen, onChoose } = props;
  const [open, setOpen] = useState(false);
  const waited = attempt.started !== null && previous?.finished != null ? attempt.started - previous.finished : null;
  return (
    <>
      <tr class={chosen ? "is-chosen" : ""}>
        <td>
          {onChoose !== null ? (
            <input
              type="checkbox"
              checked={chosen}
              onChange={onChoose}
              aria-label={`Compare ${nameOf(attempt)}`}
            />
          ) : null}
        </td>
        <td class="num" title={attempt.worker ?? ""}>
          {attempt.attempt}
        </td>
        <td>
          {attempt.error !== null ? (
            <button type="button" class="link attempt-error" aria-expanded={open} onClick={() => setOpen(!open)}>
              {attempt.error.text.split("\n", 1)[0]}
            </button>
          ) : (
            <span class={attempt.word === "ok" ? "attempt-ok" : "dim"}>{attempt.word}</span>
          )}
          {attempt.beforeRetry ? <span class="dim"> before the retry</span> : null}
          {attempt.worker !== null ? (
            <span class="dim attempt-worker">{` on ${attempt.worker.slice(0, 8)}`}</span>
          ) : null}
        </td>
        <td class="num">{waited !== null ? formatDuration(waited) : ""}</td>
        <td class="num">
          {attempt.started !== null && attempt.finished !== null
            ? formatDuration(attempt.finished - attempt.started)
            : ""}
        </td>
      </tr>
      {open && attempt.error !== null ? (
        <tr>
          <td colSpan={5}>
            {attempt.started !== null ? (
              <p class="dim">
                began <Time ms={attempt.started} style="datetime" />
              </p>
            ) : null}
            <ErrorText error={attempt.error} />
            {attempt.input !== null ? (
              <>
                <h3>Arguments</h3>
                <Value text={attempt.input} label={`Arguments of ${nameOf(attempt)}`} />
              </>
            ) : null}
          </td>
        </tr>
      ) : null}
    </>
  );
}

function AttemptDiff({ a, b }: { a: Attempt; b: Attempt }) {
  const before = a.error !== null ? wholeText(a.error) : a.word;
  const after = b.error !== null ? wholeText(b.error) : b.word;
  return (
    <section class="attempt-diff" aria-label={`${nameOf(a)} and ${nameOf(b)}`}>
      <h3>{`Compare ${nameOf(a)} and ${nameOf(b)}`}</h3>
      {before === after ? <p class="dim">Both failed in the same way.</p> : <Diff lines={diffLines(before, after)} />}
      <ArgumentDiff a={a} b={b} />
    </section>
  );
}

function ArgumentDiff({ a, b }: { a: Attempt; b: Attempt }) {
  const known = a.input !== null ? a : b;
  if (known.input === null) return null;
  const missing = a.input === null ? a : b.input === null ? b : null;
  return (
    <>
      <h3>Arguments</h3>
      {missing !== null ? (
        <p class="dim">{`Those of ${nameOf(known)}. Those of ${nameOf(missing)} ${unknown(missing)}.`}</p>
      ) : a.input === b.input ? (
        <p class="dim">Both were called with the same arguments.</p>
      ) : null}
      {missing === null && a.input !== b.input ? (
        <Diff lines={diffLines(pretty(a.input ?? ""), pretty(b.input ?? ""))} label="Difference of the arguments" />
      ) : (
        <Value text={known.input} label="Arguments" />
      )}
    </>
  );
}

function nameOf(attempt: Attempt): string {
  return attempt.beforeRetry ? `attempt ${attempt.attempt} before the retry` : `attempt ${attempt.attempt}`;
}

function unknown(attempt: Attempt): string {
  return attempt.error !== null ? "are not recorded" : "are not recorded, or equal to those of the failure before it";
}

function attemptsOf(step: StepView): Attempt[] {
  const earlier = step.attempts.map((each, index) => ({
    key: `${index}`,
    attempt: each.attempt,
    started: each.started_at !== null ? toMs(each.started_at) : null,
    finished: toMs(each.finished_at),
    worker: each.worker_id,
    error: each.error,
    word: "failed",
    input: recorded(each.input),
    beforeRetry: each.before_retry,
  }));
  if (step.status === "pending") return earlier;
  const word = { completed: "ok", running: "running", failed: "failed", abandoned: "given up", pending: "" }[
    step.status
  ];
  const last = {
    key: "last",
    attempt: step.attempt,
    started: step.started_at !== null ? toMs(step.started_at) : null,
    finished: step.finished_at !== null ? toMs(step.finished_at) : null,
    worker: step.worker_id,
    error: step.error,
    word,
    input: inputOfLast(step),
    beforeRetry: false,
  };
  return [...earlier, last];
}

/** A step keeps the latest recorded arguments. They belong to the current attempt only if it sent its own: they differ
 * from those of the last failure, or there was none. */
function inputOfLast(step: StepView): string | null {
  const latest = recorded(step.input);
  if (step.status === "failed") return latest;
  const before = step.attempts.map((each) => recorded(each.input)).filter((each) => each !== null);
  return before.at(-1) === latest ? null : latest;
}

function recorded(input: unknown): string | null {
  const text = textOf(input);
  return text === "null" ? null : text;
}
