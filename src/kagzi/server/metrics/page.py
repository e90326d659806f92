"""The metrics page: of this process and the other processes of the same server."""

from ...engine import Engine
from ...engine.measurements.values import Samples
from ..health import Health
from ..info import ServerInfo
from .exposition import exposition


def samples_of(engine: Engine, health: Health) -> Samples:
    """The samples of this process."""
    return {"kagzi_ready": [((), int(health.own_problem() is None))], **engine.measurements.samples()}


class MetricsPage:
    def __init__(self, engine: Engine, info: ServerInfo, health: Health) -> None:
        self._engine = engine
        self._info = info
        self._health = health
        self._peers = health.peers

    async def text(self) -> bytes:
        shared = await self._engine.store_gauges.samples()
        common: Samples = {**shared, "kagzi_build_info": [((self._info.version, self._info.store), 1)]}
        own = samples_of(self._engine, self._health)
        if self._peers.samples is None:
            return exposition({"": {**own, **common}})
        others = await self._peers.samples()
        absent: dict[str, Samples] = {str(peer.number): {"kagzi_ready": [((), 0)]} for peer in self._peers.processes}
        return exposition({"": common, **absent, **others, str(self._peers.number): own})
