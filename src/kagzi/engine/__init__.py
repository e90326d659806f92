"""What decides: commands in, outcomes out. Knows the storage contract, and neither drivers nor letters."""

from .control import Control
from .engine import Engine
from .explain import Explanation, Explanations
from .paging import Page, PageAsk
from .ports import HeartbeatAnswer, Notice, NoticeKind, Outlet
from .refusals import error_of
from .runs import Runs
from .session import Session
from .sessions import Sessions
from .steps import Steps
from .tasks import Tasks
from .waits import Waits
from .workers import Workers

__all__ = [
    "Control",
    "Engine",
    "Explanation",
    "Explanations",
    "HeartbeatAnswer",
    "Notice",
    "NoticeKind",
    "Outlet",
    "Page",
    "PageAsk",
    "Runs",
    "Session",
    "Sessions",
    "Steps",
    "Tasks",
    "Waits",
    "Workers",
    "error_of",
]
