"""Explains the current state of a run: one sentence, a reason for programs, the facts, and the remedy."""

from collections.abc import Sequence

import msgspec

from ....core.error_details import ErrorKind
from ....core.providers import Clock
from ....core.records import Explanation, RunRecord, StepRecord
from ....core.retry.policy import SERVER_DEFAULT, UNLIMITED
from ....core.run.misfits import misfit_of, misfit_words
from ....core.states import RunStatus, StepKind, StepStatus, WaitReason
from ....core.text.commands import quoted
from ....core.times import LAST_TIME, US_PER_S, Timestamp
from ....store.protocol import Store
from ...checks import requests as checks
from ...matching.liveness import Liveness
from ...matching.sessions import Sessions
from ..served import ServedTypes
from .failed import not_retried
from .lost import lost_attempts
from .pending import UNSERVED, PendingExplanations
from .unread import with_unread
from .words import because_words, brief, span_words, time_words

_WAITS_NAMED = 5
_STEPS_READ = 1_000
_STEPS_NAMED = 3
_WAIT_SHOWN_US = 2 * US_PER_S  # shorter waits for a worker are not worth a sentence


class Explanations:
    def __init__(
        self, store: Store, *, clock: Clock, liveness: Liveness, served: ServedTypes, sessions: Sessions
    ) -> None:
        self._store = store
        self._clock = clock
        self._sessions = sessions
        self._pending = PendingExplanations(store, clock=clock, liveness=liveness, served=served, sessions=sessions)

    async def explain(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> Explanation:
        """Raises NotFound, InvalidArgument."""
        checks.name(namespace, "namespace")
        checks.one_of(run_id, workflow_id)
        run = await self._store.get_run(namespace, run_id=run_id, workflow_id=workflow_id)
        if run is None:
            raise checks.no_run(run_id or workflow_id)
        explained = await self._with_lost_attempts(await self._explain(run), run)
        return _with_common_facts(_with_queue_time(explained, run, self._clock.now()), run)

    async def _with_lost_attempts(self, explained: Explanation, run: RunRecord) -> Explanation:
        if run.status not in (RunStatus.PENDING, RunStatus.RUNNING) or run.started_at is None:
            return explained
        sentence, facts = lost_attempts(await self._open_steps(run))
        return msgspec.structs.replace(
            explained, sentence=explained.sentence + sentence, facts={**explained.facts, **facts}
        )

    async def _explain(self, run: RunRecord) -> Explanation:
        match run.status:
            case RunStatus.PENDING:
                return await self._pending.explain(run)
            case RunStatus.RUNNING:
                return await self._running(run)
            case RunStatus.SLEEPING:
                return await self._sleeping(run)
            case RunStatus.PAUSED:
                return _paused(run)
            case _:
                return await with_unread(self._store, run, _ended(run, await not_retried(self._store, run)))

    # --- held by a worker ---------------------------------------------------------------------------------------------

    async def _running(self, run: RunRecord) -> Explanation:
        steps = await self._open_steps(run)
        worker = await self._store.get_worker(run.run.namespace, run.worker_id or "") if run.worker_id else None
        place = run.worker_id or "a worker"
        if worker is not None and worker.hostname:
            place += f" ({worker.hostname}{f', pid {worker.pid}' if worker.pid else ''})"
        facts = {"worker": run.worker_id or "", "started_at": time_words(run.started_at)}
        facts |= {"steps": ", ".join(step.step_id for step in steps[:_STEPS_NAMED])} if steps else {}
        doing = _doing(steps)
        # Another worker may have begun it, so the begin does not tell how long this worker has had it.
        began = f"; it began at {time_words(run.started_at)}" if run.started_at is not None else ""
        if run.cancel_requested:
            return Explanation(
                sentence=f"Its cancellation was requested{because_words(run.cancel_reason)}; worker {place} "
                f"will stop it after its cleanup{doing}.",
                reason="cancel_requested",
                facts=facts,
                remedy="It ends when its cleanup is done, at the latest at its cleanup limit. "
                "Terminate it to end it now.",
            )
        if run.pause_requested:
            return Explanation(
                sentence=f"It will be paused{because_words(run.pause_reason)}: "
                f"worker {place} finishes what is in progress{doing}.",
                reason="pause_requested",
                facts={**facts, "pause_reason": run.pause_reason},
            )
        if (delivering_s := self._sessions.delivering_s(run.run.run_id)) is not None:
            return Explanation(
                sentence=f"It is on its way to worker {place}, which has not received it after {delivering_s:.0f} s: "
                "the connection is slow, or much else is sent before it.",
                reason="delivering",
                facts={**facts, "delivering_s": f"{delivering_s:.0f}"},
                remedy="Check the connection from the server to the worker. Smaller inputs and results of steps, or a "
                "lower max_concurrent of the worker, arrive sooner.",
            )
        return Explanation(
            sentence=f"It runs on worker {place}{doing}{began}.",
            reason="running",
            facts=facts,
            remedy="If the worker is gone, another one takes over when the lease ends, within seconds.",
        )

    async def _open_steps(self, run: RunRecord) -> list[StepRecord]:
        """Open steps, the latest first. Of a very long run only the last steps are read, where open ones are."""
        after = max(0, run.last_seq - _STEPS_READ)
        steps: list[StepRecord] = []
        more = True
        while more:  # a page may end early, at a number of bytes
            rows = await self._store.list_steps(
                run.run, name=None, after_begun_seq=after, limit=_STEPS_READ, payloads=False
            )
            if rows is None or not rows.rows:
                break
            steps += (step for step in rows.rows if step.status in (StepStatus.RUNNING, StepStatus.PENDING))
            after, more = rows.rows[-1].begun_seq, rows.has_more
        return steps[::-1]

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def _sleeping(self, run: RunRecord) -> Explanation:
        if run.blocked_by is not None:
            return Explanation(
                sentence=f"It has not begun: it begins when run {run.blocked_by} has ended.",
                reason="waiting_for_run",
                facts={"blocked_by": run.blocked_by},
                remedy=f"Look at that run: kagzi explain {quoted(run.blocked_by)}",
            )
        if run.started_at is None and run.wait_reason is WaitReason.TIME:
            return Explanation(
                sentence=f"It has not begun: it starts at {time_words(run.wake_at)}.",
                reason="delayed_start",
                facts={"wakes_at": time_words(run.wake_at)},
            )
        step = await self._nearest_wait(run)
        if run.wait_reason is WaitReason.RETRY and (step is None or step.kind is not StepKind.FUNCTION):
            return _run_retry(run)
        if step is None:
            return Explanation(
                sentence=f"It sleeps until {time_words(run.wake_at)}." if run.wake_at else "It waits.",
                reason="sleeping",
                facts={"wakes_at": time_words(run.wake_at)},
            )
        explained = _waiting_for(step, run)
        if step.child_run_id is not None:
            explained = await self._with_child(explained, run, step.child_run_id)
        more = len(run.waits) - 1
        if more <= 0:
            return explained
        sentence = f"{explained.sentence[:-1]}, and for {more} other {'thing' if more == 1 else 'things'}."
        return msgspec.structs.replace(
            explained, sentence=sentence, facts={**explained.facts, "waits": ", ".join(run.waits[:_WAITS_NAMED])}
        )

    async def _with_child(self, explained: Explanation, run: RunRecord, child_run_id: str) -> Explanation:
        """A child that no worker serves is why its parent does not continue."""
        child = await self._store.get_run(run.run.namespace, run_id=child_run_id)
        if child is None or child.status is not RunStatus.PENDING:
            return explained
        why = await self._pending.explain(child)
        if why.reason not in UNSERVED:
            return explained
        sentence = f"{explained.sentence} The child waits{why.sentence.removeprefix('It waits')}"
        return msgspec.structs.replace(
            explained,
            sentence=sentence,
            facts={**why.facts, **explained.facts},
            remedy=f"{why.remedy} {explained.remedy}",
        )

    async def _nearest_wait(self, run: RunRecord) -> StepRecord | None:
        if run.waits:
            return await self._store.get_step(run.run, run.waits[0])
        steps = await self._open_steps(run)
        return min(steps, key=lambda step: step.wake_at or step.retry_at or LAST_TIME, default=None)


def _waiting_for(step: StepRecord, run: RunRecord) -> Explanation:
    facts = {"step": step.step_id}
    match step.kind:
        case StepKind.SIGNAL:
            limit = f" until {time_words(step.wake_at)}" if step.wake_at is not None else ""
            return Explanation(
                sentence=f"It waits for the signal {step.name!r} in step {step.step_id}{limit}.",
                reason="waiting_for_signal",
                facts={**facts, "signal": step.name, "times_out_at": time_words(step.wake_at)},
                remedy=f"Send it: kagzi signal {quoted(run.run.run_id)} {quoted(step.name)} VALUE",
            )
        case StepKind.CHILD:
            return Explanation(
                sentence=f"It waits for its child run {step.child_run_id} (step {step.step_id}).",
                reason="waiting_for_child",
                facts={**facts, "child_run_id": step.child_run_id or ""},
                remedy=f"Look at the child: kagzi explain {quoted(step.child_run_id)}",
            )
        case StepKind.SLEEP:
            return Explanation(
                sentence=f"It sleeps until {time_words(step.wake_at)} in step {step.step_id}.",
                reason="sleeping",
                facts={**facts, "wakes_at": time_words(step.wake_at)},
            )
        case _:
            return _step_retry(step)


def _step_retry(step: StepRecord) -> Explanation:
    policy = step.retry or SERVER_DEFAULT
    of = "" if policy.maximum_attempts == UNLIMITED else f" of {policy.maximum_attempts}"
    last = step.attempts[-1].error if step.attempts else step.error
    failed = f"; the last one failed with {brief(last.text)}" if last is not None else ""
    return Explanation(
        sentence=f"It waits to retry step {step.step_id}: "
        f"attempt {step.attempt}{of} at {time_words(step.retry_at)}{failed}.",
        reason="waiting_for_retry",
        facts={
            "step": step.step_id,
            "attempt": str(step.attempt),
            "maximum_attempts": str(policy.maximum_attempts),
            "retry_at": time_words(step.retry_at),
        },
    )


def _run_retry(run: RunRecord) -> Explanation:
    of = f" of {run.retry.maximum_attempts}" if run.retry and run.retry.maximum_attempts != UNLIMITED else ""
    failed = f"; the last one failed with {brief(run.error.text)}" if run.error is not None else ""
    return Explanation(
        sentence=f"The run is retried as a whole: attempt {run.attempt}{of} at {time_words(run.wake_at)}{failed}.",
        reason="waiting_for_run_retry",
        facts={"attempt": str(run.attempt), "retry_at": time_words(run.wake_at)},
    )


def _paused(run: RunRecord) -> Explanation:
    resume = f"kagzi resume {quoted(run.run.run_id)}"
    problem = run.problem
    if problem is None:
        why = f": {brief(run.pause_reason)}" if run.pause_reason else ""
        facts = {"pause_reason": run.pause_reason}
        return Explanation(sentence=f"It was paused{why}.", reason="paused", facts=facts, remedy=f"Resume it: {resume}")
    if (misfit := misfit_of(problem)) is not None:
        words = misfit_words(misfit, run.run.run_id)
        return Explanation(
            sentence=words.sentence, reason="signal_does_not_fit", facts=words.facts, remedy=words.remedy
        )
    if problem.kind is ErrorKind.NONDETERMINISM:
        return Explanation(
            sentence=f"It is paused because the code does not fit its history: {brief(problem.message)}.",
            reason="diverged",
            facts={"step": problem.subject_id} if problem.subject == "step" else {},
            remedy="Deploy code that fits: it continues by itself when a worker with another build id registers. "
            f"To let only this run continue with repaired code: kagzi adopt {quoted(run.run.run_id)} --code FILE. "
            f"Or try again with the same code: {resume}",
        )
    if problem.kind is ErrorKind.LOST:
        return Explanation(
            sentence=f"It is quarantined: {brief(problem.message)}.",
            reason="quarantined",
            facts={"lost_leases": str(run.lost_leases)},
            remedy=f"Find out why it kills its workers, then resume it: {resume}",
        )
    return Explanation(
        sentence=f"It is paused: {brief(problem.message)}." if problem.message else "It was paused.",
        reason="paused",
        remedy=f"Resume it: {resume}",
    )


def _ended(run: RunRecord, not_retried: str) -> Explanation:
    at = f" at {time_words(run.finished_at)}"
    if run.status is RunStatus.COMPLETED:
        if run.continued_as is not None:
            return Explanation(
                sentence=f"It completed{at} and continues as run {run.continued_as}.",
                reason="continued",
                facts={"continued_as": run.continued_as},
                remedy=f"kagzi explain {quoted(run.continued_as)}",
            )
        return Explanation(sentence=f"It completed{at}.", reason="completed")
    error = run.error
    cause = f": {brief(error.text)}" if error is not None and error.text else ""
    if run.status is RunStatus.CANCELLED:
        terminated = error is not None and error.kind is ErrorKind.TERMINATED
        return Explanation(
            sentence=f"It was {'terminated' if terminated else 'cancelled'}{at}"
            f"{because_words(run.cancel_reason) or cause}.",
            reason="terminated" if terminated else "cancelled",
        )
    facts = {"step": error.subject_id} if error is not None and error.subject == "step" else {}
    facts["not_retried"] = not_retried
    step = f" in step {error.subject_id}" if error is not None and error.subject == "step" else ""
    return Explanation(
        sentence=f"It failed{at}{step}{cause}{f' ({not_retried})' if not_retried else ''}.",
        reason="timed_out" if error is not None and error.kind is ErrorKind.TIMEOUT and not step else "failed",
        facts=facts,
        remedy=f"When the cause is fixed, continue from there: kagzi retry {quoted(run.run.run_id)}",
    )


# --- wording ----------------------------------------------------------------------------------------------------------


def _with_queue_time(explanation: Explanation, run: RunRecord, now: Timestamp) -> Explanation:
    """How long it waits for a worker, or has waited, if that is worth a sentence."""
    waiting_us = 0 if run.ready_at is None else max(now - run.ready_at, 0)
    facts = dict(explanation.facts)
    sentence = explanation.sentence
    if waiting_us >= _WAIT_SHOWN_US:
        sentence += f" It has been waiting for {span_words(waiting_us)}."
        facts["ready_at"] = time_words(run.ready_at)
    if run.queued_us >= _WAIT_SHOWN_US:
        before = " before" if run.ready_at is not None else ""
        sentence += f" It waited {span_words(run.queued_us)} for workers{before}."
        facts["queued_s"] = f"{run.queued_us / US_PER_S:.3f}"
    return msgspec.structs.replace(explanation, sentence=sentence, facts=facts)


def _with_common_facts(explanation: Explanation, run: RunRecord) -> Explanation:
    facts = {"run_id": run.run.run_id, "status": str(run.status), **explanation.facts}
    facts["deadline_at"] = time_words(run.deadline_at)
    facts["status_text"] = run.status_text
    return msgspec.structs.replace(explanation, facts={key: value for key, value in facts.items() if value})


def _doing(steps: Sequence[StepRecord]) -> str:
    """The steps in flight as text; waits only if there is nothing else."""
    busy = [step for step in steps if step.kind is StepKind.FUNCTION and step.status is StepStatus.RUNNING]
    named = ", ".join(f"{step.step_id} (attempt {step.attempt})" for step in busy[:_STEPS_NAMED])
    if not named:
        return ""
    more = f" and {len(busy) - _STEPS_NAMED} more" if len(busy) > _STEPS_NAMED else ""
    return f", in step {named}{more}" if len(busy) == 1 else f", in steps {named}{more}"
