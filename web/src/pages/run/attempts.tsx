// All attempts of a step; two of them side by side say what changed.
import { useState } from "preact/hooks";
import type { ErrorView, StepView } from "../../api/types";
import { diffLines } from "../../model/diff";
import { formatDuration } from "../../model/durations";
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
      {two.length === 2 && two[0] && two[1] ? <AttemptDiff a={two[0]} b={two[1]} input={textOf(step.input)} /> : null}
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
              aria-label={`Compare attempt ${attempt.attempt}`}
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
          </td>
        </tr>
      ) : null}
    </>
  );
}

function AttemptDiff({ a, b, input }: { a: Attempt; b: Attempt; input: string | null }) {
  const before = a.error !== null ? wholeText(a.error) : a.word;
  const after = b.error !== null ? wholeText(b.error) : b.word;
  return (
    <section class="attempt-diff" aria-label={`Attempts ${a.attempt} and ${b.attempt}`}>
      <h3>{`Attempt ${a.attempt} and attempt ${b.attempt}`}</h3>
      {before === after ? <p class="dim">Both failed in the same way.</p> : <Diff lines={diffLines(before, after)} />}
      {input !== null && input !== "null" ? (
        <>
          <h3>Arguments</h3>
          <p class="dim">Those of the latest attempt that failed: each failure replaces what was kept before.</p>
          <Value text={input} label="Arguments" />
        </>
      ) : null}
    </section>
  );
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
  };
  return [...earlier, last];
}
