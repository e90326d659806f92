"""Decides about runs: commands in, outcomes out. Knows the storage contract, but neither drivers nor messages."""

from ..core.checks.refused_requests import error_of
from .engine import Engine
from .live.live_lists import ListChange, ListRows, LiveLists, NewRows, RowChanged, RowGone
from .live.watching import Watching, WatchUpdate
from .matching.ports import HeartbeatAnswer, Notice, NoticeKind, Outlet
from .matching.session import Session
from .matching.sessions import Sessions
from .services.bulk import Bulk
from .services.control import Control
from .services.explain.explanations import Explanations
from .services.keys.audit import CALLER, Audit
from .services.keys.keys import Keys, NewKey
from .services.paging import Page, PageAsk
from .services.runs import Runs
from .services.schedules import Schedules
from .services.served import LIMITS_WAIT, RUN_WAITS, RUNS_WAIT, Named, ServedTypes
from .services.shared import Shared
from .services.stats import Figures
from .services.steps import Steps
from .services.tasks import Tasks
from .services.transfers import Transfers
from .services.waits import Waits
from .services.workers import BY_OPERATOR, Workers

__all__ = [
    "BY_OPERATOR",
    "CALLER",
    "LIMITS_WAIT",
    "RUNS_WAIT",
    "RUN_WAITS",
    "Audit",
    "Bulk",
    "Control",
    "Engine",
    "Explanations",
    "Figures",
    "HeartbeatAnswer",
    "Keys",
    "ListChange",
    "ListRows",
    "LiveLists",
    "Named",
    "NewKey",
    "NewRows",
    "Notice",
    "NoticeKind",
    "Outlet",
    "Page",
    "PageAsk",
    "RowChanged",
    "RowGone",
    "Runs",
    "Schedules",
    "ServedTypes",
    "Session",
    "Sessions",
    "Shared",
    "Steps",
    "Tasks",
    "Transfers",
    "Waits",
    "WatchUpdate",
    "Watching",
    "Workers",
    "error_of",
]
