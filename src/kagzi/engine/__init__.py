"""What decides: commands in, outcomes out. Knows the storage contract, and neither drivers nor letters."""

from .engine import Engine
from .paging import Page, PageAsk
from .ports import HeartbeatAnswer, Notice, NoticeKind, Outlet
from .runs import Runs
from .session import Session
from .sessions import Sessions
from .steps import Steps
from .tasks import Tasks
from .waits import Waits
from .workers import Workers

__all__ = [
    "Engine",
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
]
