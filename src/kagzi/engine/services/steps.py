"""Steps, as people look at them."""

import msgspec

from ...core.errors import not_found
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.records import StepRecord
from ...store.protocol import Store
from ..checks import requests as checks
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total


class Steps:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self, namespace: str, run_id: str, *, name: str | None, page: PageAsk, payloads: bool
    ) -> Page[StepRecord]:
        """In the order in which they were begun. Raises NotFound, InvalidArgument."""
        run = checks.key(namespace, run_id)
        checks.optional_name(name or "", "step_name")
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
        result = msgspec.structs.replace(result, prev_token="")  # steps are read forwards only
        what = Counted(rows="steps", namespace=namespace, key=run_id, step_name=name or "")
        return await with_total(result, page, self._store, what)

    async def get(self, namespace: str, run_id: str, step_id: str) -> StepRecord:
        run = checks.key(namespace, run_id)
        checks.name(step_id, "step_id")
        step = await self._store.get_step(run, step_id)
        if step is None:
            raise not_found("step", f"{run_id}/{step_id}")
        return step
