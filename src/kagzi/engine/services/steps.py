"""Steps for clients: lists, timelines and waits for signals."""

from collections.abc import Sequence

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument, NotFound, not_found
from ...core.ids import is_uuid
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.pages.signal_waits import SignalWait
from ...core.pages.timeline import TIMELINE_STEPS, Timeline, TimelineQuery
from ...core.records import RunKey, RunRecord, StepRecord
from ...store.protocol import Store
from ..checks import requests as checks
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total


class Steps:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self,
        namespace: str,
        run_id: str,
        *,
        name: str | None,
        page: PageAsk,
        payloads: bool,
        forgotten: bool = False,
    ) -> Page[StepRecord]:
        """In the order in which they were begun. `forgotten`: instead, those that retries of the run have discarded,
        the latest retry first. Raises NotFound, InvalidArgument."""
        run = checks.key(namespace, run_id)
        checks.optional_name(name or "", "step_name")
        if forgotten:
            return await self._list_forgotten(run, name=name or None, page=page, payloads=payloads)
        bound_to = msgspec.json.encode(("steps", namespace, run_id, name)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_steps(
            run,
            name=name or None,
            after_begun_seq=cursor.at if cursor is not None else 0,
            limit=page_size(page),
            payloads=payloads,
        )
        if rows is None:
            raise checks.no_run(run_id)
        result = page_of(rows, cursor, bound_to, lambda step: Cursor(step.begun_seq, step.step_id))
        result = msgspec.structs.replace(result, prev_token="")  # steps only page forward
        what = Counted(rows="steps", namespace=namespace, key=run_id, step_name=name or "")
        return await with_total(result, page, self._store, what)

    async def _list_forgotten(
        self, run: RunKey, *, name: str | None, page: PageAsk, payloads: bool
    ) -> Page[StepRecord]:
        bound_to = msgspec.json.encode(("forgotten_steps", run.namespace, run.run_id, name)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_forgotten_steps(
            run,
            name=name,
            after=None if cursor is None else (int(cursor.id), cursor.at),
            limit=page_size(page),
            payloads=payloads,
        )
        if rows is None:
            raise checks.no_run(run.run_id)
        result = page_of(rows, cursor, bound_to, lambda step: Cursor(step.begun_seq, str(step.retry_seq)))
        result = msgspec.structs.replace(result, prev_token="")  # as above
        what = Counted(rows="forgotten_steps", namespace=run.namespace, key=run.run_id, step_name=name or "")
        return await with_total(result, page, self._store, what)

    async def timeline(self, namespace: str, run_id: str, query: TimelineQuery) -> Timeline:
        """Columns of up to TIMELINE_STEPS steps, without payloads: the newest, those after or before a begun_seq, or
        those around a step. Raises NotFound (the run, or the step to look around), InvalidArgument."""
        run = checks.key(namespace, run_id)
        checks.optional_name(query.name, "name")
        checks.optional_name(query.around, "around")
        checks.within(query.size, 1, TIMELINE_STEPS, "size")
        for field in ("after", "before"):
            value = getattr(query, field)
            if value is not None:
                checks.within(value, 0, checks.INT64_END - 2, field)  # the stores add 1
        anchors = [field for field in ("after", "before", "around") if getattr(query, field) not in (None, "")]
        if len(anchors) > 1:
            raise InvalidArgument(f"{' and '.join(anchors)} are both given. Give one of them.", field=anchors[1])
        timeline = await self._store.timeline(run, query)
        if timeline is None:
            raise checks.no_run(run_id)
        if not timeline.knows_around:
            raise not_found("step", f"{run_id}/{query.around}")
        return timeline

    async def signal_waits(self, namespace: str, runs: Sequence[RunRecord]) -> dict[str, tuple[SignalWait, ...]]:
        """The signals that these runs wait for, by run id; without runs that no longer wait, and without runs beyond
        the size of a page."""
        waits: dict[str, tuple[SignalWait, ...]] = {}
        for wait in await self._store.signal_waits(namespace, [record.run.run_id for record in runs]):
            waits[wait.run_id] = (*waits.get(wait.run_id, ()), wait)
        return waits

    async def find(self, namespace: str, step_id: str) -> tuple[str, str]:
        """The run id and the step id of a step that is named without its run: by its idempotency key, `RUN/STEP`, or by
        a step id that only one of the newest runs has. Raises NotFound, InvalidArgument."""
        checks.name(namespace, "namespace")
        run_id, slash, rest = step_id.partition("/")
        if slash and rest and is_uuid(run_id):
            return run_id, rest
        checks.name(step_id, "step_id")
        runs = await self._store.runs_with_step(namespace, step_id)
        remedy = f"Name run_id, or the idempotency key as step_id: RUN_ID/{step_id}."
        if not runs:
            raise NotFound(
                f"no step {step_id} in the newest {limits.SEARCHED_RUNS} runs. {remedy}",
                subject="step",
                subject_id=step_id,
            )
        if len(runs) > 1:
            raise InvalidArgument(f"several runs have a step {step_id}. {remedy}", field="run_id")
        return runs[0], step_id

    async def get(self, namespace: str, run_id: str, step_id: str, *, retry_seq: int = 0) -> StepRecord:
        """`retry_seq`: as it was when this retry of the run discarded it. Raises NotFound, InvalidArgument."""
        run = checks.key(namespace, run_id)
        checks.name(step_id, "step_id")
        checks.within(retry_seq, 0, checks.INT64_END - 1, "retry_seq")
        if retry_seq:
            step = await self._store.get_forgotten_step(run, step_id, retry_seq)
        else:
            step = await self._store.get_step(run, step_id)
        if step is None:
            raise not_found("step", f"{run_id}/{step_id}")
        return step
