"""Namespace quotas: how many more runs may be started in limited namespaces. The rows are locked until the commit."""

from collections.abc import Sequence

from ....core.run.outcomes import Refused
from ....core.run.refusals import namespace_full, starts_too_fast, too_much_stored
from ....core.times import Timestamp
from ....core.workflow_types.queues import Rate
from ..connection.connection import Row, Session


class _Quota:
    """The quota of one namespace; `left` None: unlimited."""

    def __init__(self, row: Row, open_runs: int) -> None:
        self.namespace: str = row["namespace"]
        self.limit: int | None = row["open_runs_limit"]
        self.left = None if self.limit is None else max(0, self.limit - open_runs)
        per_second: float | None = row["starts_per_second_limit"]
        self.rate = None if per_second is None else Rate(per_second, row["next_start_at"])
        self.stored: int | None = row["stored_bytes"]
        self.stored_limit: int | None = row["stored_bytes_limit"]

    def refusal(self, now: Timestamp) -> Refused | None:
        if self.left is not None and self.limit is not None and self.left <= 0:
            return namespace_full(self.namespace, self.limit)
        if self.stored is not None and self.stored_limit is not None and self.stored > self.stored_limit:
            return too_much_stored(self.namespace, self.stored, self.stored_limit)
        if self.rate is not None and not self.rate.allows(now):
            return starts_too_fast(self.namespace, self.rate.per_second, self.rate.allows_at() - now)
        return None

    def take(self, now: Timestamp) -> None:
        if self.left is not None:
            self.left -= 1
        if self.rate is not None:
            self.rate = self.rate.after_start(now)


class NamespaceQuotas:
    """`take` what `refusal` does not refuse, then `settle`, all in one transaction."""

    def __init__(self, session: Session, quotas: Sequence[_Quota], now: Timestamp) -> None:
        self._session = session
        self._quotas = {quota.namespace: quota for quota in quotas}
        self._now = now

    @classmethod
    async def lock(cls, session: Session, namespaces: Sequence[str], now: Timestamp) -> "NamespaceQuotas":
        quotas: list[_Quota] = []
        for row in await session.read("lock_namespaces", namespaces=namespaces) if namespaces else ():
            open_runs = 0
            if row["open_runs_limit"] is not None:
                [counted] = await session.read(
                    "count_open_runs", namespace=row["namespace"], limit=row["open_runs_limit"]
                )
                open_runs = counted["runs"]
            quotas.append(_Quota(row, open_runs))
        return cls(session, quotas, now)

    def refusal(self, namespace: str) -> Refused | None:
        quota = self._quotas.get(namespace)
        return None if quota is None else quota.refusal(self._now)

    def take(self, namespace: str) -> None:
        quota = self._quotas.get(namespace)
        if quota is not None:
            quota.take(self._now)

    async def settle(self) -> None:
        rated = {quota.namespace: quota.rate.due_at for quota in self._quotas.values() if quota.rate is not None}
        if rated:
            await self._session.read("note_starts", namespaces=list(rated), times=list(rated.values()))
