"""What decides: commands in, outcomes out. Knows the storage contract, and neither drivers nor messages."""

from .checks.refusals import error_of
from .engine import Engine
from .matching.ports import HeartbeatAnswer, Notice, NoticeKind, Outlet
from .matching.session import Session
from .matching.sessions import Sessions
from .services.bulk import Bulk
from .services.control import Control
from .services.explain.explanations import Explanations
from .services.paging import Page, PageAsk
from .services.runs import Runs
from .services.schedules import Schedules
from .services.served import LIMITS_WAIT, RUN_WAITS, RUNS_WAIT, Named, ServedTypes
from .services.stats import Figures
from .services.steps import Steps
from .services.tasks import Tasks
from .services.transfers import Transfers
from .services.waits import Waits
from .services.watching import Watching, WatchUpdate
from .services.workers import Workers

__all__ = [
    "LIMITS_WAIT",
    "RUNS_WAIT",
    "RUN_WAITS",
    "Bulk",
    "Control",
    "Engine",
    "Explanations",
    "Figures",
    "HeartbeatAnswer",
    "Named",
    "Notice",
    "NoticeKind",
    "Outlet",
    "Page",
    "PageAsk",
    "Runs",
    "Schedules",
    "ServedTypes",
    "Session",
    "Sessions",
    "Steps",
    "Tasks",
    "Transfers",
    "Waits",
    "WatchUpdate",
    "Watching",
    "Workers",
    "error_of",
]
