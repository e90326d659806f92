import { useMemo } from "preact/hooks";
import { RawJson } from "../../model/json-text";
import { fieldsOf } from "../../model/schema-form";
import { toMs } from "../../model/times";
import type { Card, InboxStore } from "../../state/inbox-store";
import { href } from "../../state/route";
import { A } from "../../ui/a";
import { ErrorBox } from "../../ui/error-box";
import { Icon } from "../../ui/icon";
import { Elapsed, Until } from "../../ui/time";
import { AnswerForm, YesOrNo } from "./form";
import { twoButtonsOf } from "./buttons";

interface CardProps {
  readonly card: Card;
  readonly store: InboxStore;
  readonly mayAnswer: boolean;
}

export function InboxCard({ card, store, mayAnswer }: CardProps) {
  const run = card.run.value;
  const state = card.state.value;
  const problem = card.problem.value;
  const link = href(`/runs/${run.run_id}`);
  return (
    <article class="card inbox-card" tabIndex={0} data-card={card.key} data-state-of-card={state} aria-label={`${card.wait.signal} of ${run.workflow_id}`}>
      <h2 class="inbox-title" title={run.status_text ?? ""}>
        {run.status_text ?? run.workflow}
      </h2>
      <p class="inbox-facts">
        <span class="inbox-signal">
          <Icon name="envelope" /> {card.wait.signal}
        </span>
        <span>
          {run.workflow}{" "}
          <A href={link} class="mono inbox-run">
            {run.workflow_id}
          </A>
        </span>
        <span class="dim">
          waiting <Elapsed since={toMs(card.wait.since)} />
        </span>
        {card.wait.expires_at !== null && state !== "answered" && (
          <span class="inbox-expires">
            <Icon name="clock" /> expires <Until ms={toMs(card.wait.expires_at)} />
          </span>
        )}
      </p>
      {state === "answered" ? (
        <p class="inbox-answered" role="status">
          <Icon name="check" /> Answered: {card.answer.value}. <A href={link}>Open the run</A>
        </p>
      ) : state === "gone" ? (
        <p class="dim" role="status">
          No longer waiting: it was answered elsewhere, or the run ended. <A href={link}>Open the run</A>
        </p>
      ) : mayAnswer ? (
        <Answer card={card} store={store} />
      ) : (
        <p class="dim">This key is read-only. Answering needs the client scope.</p>
      )}
      {problem !== null && <ErrorBox problem={problem} />}
    </article>
  );
}

function Answer({ card, store }: { readonly card: Card; readonly store: InboxStore }) {
  const { signal, schema } = card.wait;
  const field = useMemo(() => (schema instanceof RawJson && schema.text !== "null" ? fieldsOf(schema.text) : null), [card]);
  const buttons = useMemo(() => (field === null ? null : twoButtonsOf(field, signal)), [field]);
  const busy = card.state.value === "sending";
  const answer = (text: string, word: string) => void store.answer(card, text, word);
  return buttons === null || buttons.field !== null ? (
    <AnswerForm field={field} signal={signal} buttons={buttons} busy={busy} onAnswer={answer} />
  ) : (
    <YesOrNo buttons={buttons} busy={busy} onChoose={answer} />
  );
}
