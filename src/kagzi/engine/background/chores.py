"""The list of chores, and how often each is done."""

from collections.abc import Iterator
from typing import NamedTuple

from ...core.limits import Settings
from ...store.protocol import Store
from ..services.bulk import Bulk
from ..services.keys.audit import Audit
from ..services.keys.keys import Keys
from ..services.schedules import Schedules
from ..services.stats import Stats
from ..services.transfers import Transfers
from ..services.workers import Workers
from .housekeeping import Chore
from .namespace_chores import CHORE as NAMESPACE_CHORE
from .namespace_chores import NamespaceChores
from .retention import Retention


class Serviced(NamedTuple):
    """The objects that have chores."""

    stats: Stats
    workers: Workers
    bulk: Bulk
    transfers: Transfers
    keys: Keys
    audit: Audit
    schedules: Schedules


def chores_of(store: Store, settings: Settings, of: Serviced) -> Iterator[Chore]:
    yield Chore(name="retention", work=Retention(store, settings).work, shared=True)
    yield Chore(name=NAMESPACE_CHORE, work=NamespaceChores(store).work, every=1)
    yield Chore(name="figures", work=of.stats.roll_up, every=1)
    yield Chore(name="old figures", work=of.stats.forget, every=60, shared=True)
    yield Chore(name="lost workers", work=of.workers.sweep, every=1)
    yield Chore(name="old workers", work=of.workers.forget_old, every=60, shared=True)
    yield Chore(name="bulk-operations", work=of.bulk.forget, every=60, shared=True)
    yield Chore(name="imports", work=of.transfers.sweep, every=10, shared=True)
    yield Chore(name="old keys", work=of.keys.forget, every=60, shared=True)
    yield Chore(name="old audit", work=of.audit.forget, every=60, shared=True)
    yield Chore(name="old fires", work=of.schedules.forget_old_fires, every=60, shared=True)
