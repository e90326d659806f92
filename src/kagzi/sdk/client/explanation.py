"""Why a run is where it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...core.public import exported


@exported
@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a run is where it is. `str()` is the sentence."""

    sentence: str  #: for people
    reason: str = ""  #: a stable word for programs
    facts: Mapping[str, str] = field(default_factory=dict[str, str])  #: what the sentence is based on
    remedy: str = ""  #: what to do about it; empty if there is nothing to do

    def __str__(self) -> str:
        return self.sentence
