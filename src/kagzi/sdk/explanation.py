"""Why a run is where it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Explanation:
    """`str()` is the sentence for people. `reason` is a stable word for programs, `facts` are what it goes by, and `remedy` is what
    to do about it; empty if there is nothing to do."""

    sentence: str
    reason: str = ""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    remedy: str = ""

    def __str__(self) -> str:
        return self.sentence
