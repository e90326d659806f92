"""What decides: commands in, outcomes out. Knows the storage contract, and neither drivers nor letters."""

from .bulk import Bulk
from .control import Control
from .engine import Engine
from .explain import Explanations
from .explain_words import Explanation
from .paging import Page, PageAsk
from .ports import HeartbeatAnswer, Notice, NoticeKind, Outlet
from .refusals import error_of
from .runs import Runs
from .schedules import Schedules
from .served import LIMITS_WAIT, RUN_WAITS, RUNS_WAIT, Named, ServedTypes
from .session import Session
from .sessions import Sessions
from .stats import Figures
from .steps import Steps
from .tasks import Tasks
from .transfers import Transfers
from .waits import Waits
from .watching import Told, Watching
from .workers import Workers

__all__ = [
    "LIMITS_WAIT",
    "RUNS_WAIT",
    "RUN_WAITS",
    "Bulk",
    "Control",
    "Engine",
    "Explanation",
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
    "Told",
    "Transfers",
    "Waits",
    "Watching",
    "Workers",
    "error_of",
]
