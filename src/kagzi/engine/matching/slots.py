"""Objects that can take runs: sessions, and polls while they wait."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from ...core.records import ClaimedRun


class Claimant(ABC):
    """Slots are reserved before a run is claimed or started for them, and given back if there is none."""

    def __init__(
        self, namespace: str, worker_id: str, versions: Mapping[str, tuple[str, ...]], build_id: str = ""
    ) -> None:
        self.namespace = namespace
        self.worker_id = worker_id
        self.versions = versions  # by workflow type, preferred first
        self.build_id = build_id

    @abstractmethod
    def offerable(self) -> int:
        """How many runs it can be offered now."""

    @abstractmethod
    def reserve(self, count: int) -> None: ...

    @abstractmethod
    def give_back(self, count: int) -> None:
        """Frees reserved slots that got no run."""

    @abstractmethod
    def give(self, claimed: Sequence[ClaimedRun]) -> bool:
        """Hands over runs for the same number of reserved slots. False: it is closed, the runs must be handed back."""


class PollClaimant(Claimant):
    """A poll takes one batch of runs. While one is being claimed, it is offered nothing else: later runs would be
    lost."""

    def __init__(
        self,
        namespace: str,
        worker_id: str,
        versions: Mapping[str, tuple[str, ...]],
        max_tasks: int,
        *,
        build_id: str = "",
    ) -> None:
        super().__init__(namespace, worker_id, versions, build_id)
        self._max_tasks = max_tasks
        self._reserved = 0
        self._closed = False
        self._stopping = False
        self._delivery: asyncio.Future[Sequence[ClaimedRun]] = asyncio.get_running_loop().create_future()
        self._settled = asyncio.Event()
        self._settled.set()

    def offerable(self) -> int:
        unavailable = self._closed or self._stopping or self._reserved or self._delivery.done()
        return 0 if unavailable else self._max_tasks

    def reserve(self, count: int) -> None:
        self._reserved += count
        self._settled.clear()

    def give_back(self, count: int) -> None:
        self._reserved -= count
        if self._reserved <= 0:
            self._settled.set()
            if self._stopping and not self._delivery.done():
                self._delivery.set_result(())

    def give(self, claimed: Sequence[ClaimedRun]) -> bool:
        taken = not (self._closed or self._delivery.done())
        if taken:
            self._delivery.set_result(claimed)
        self.give_back(len(claimed))
        return taken

    async def delivery(self, round_done: asyncio.Future[None], wait_s: float, settle_s: float) -> Sequence[ClaimedRun]:
        """The runs that were given within the wait, or none. Returns only after one round of claims (`round_done`),
        however short the wait; if a batch is being claimed at the end, waits a little longer for it."""
        try:
            async with asyncio.timeout(wait_s):
                return await asyncio.shield(self._delivery)
        except TimeoutError:
            pass
        try:
            async with asyncio.timeout(settle_s):
                await asyncio.shield(round_done)
                await self._settled.wait()
        except TimeoutError:
            pass
        return self._delivery.result() if self._delivery.done() else ()

    def stop(self) -> None:
        """Ends the wait: with the batch that is being claimed, if any, else with nothing."""
        self._stopping = True
        if not self._reserved and not self._delivery.done():
            self._delivery.set_result(())

    def close(self) -> Sequence[ClaimedRun]:
        """Closes it. Returns runs that were given but not delivered, if its caller has gone."""
        self._closed = True
        if not self._delivery.done():
            self._delivery.set_result(())
        return self._delivery.result()
