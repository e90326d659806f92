"""An explanation of where a run is, for people and for programs."""

from collections.abc import Mapping

import msgspec

from .public import exported


@exported
class Explanation(msgspec.Struct, frozen=True):
    """Why a run is where it is. `str()` is the sentence."""

    sentence: str  #: for people
    reason: str = ""  #: a stable word for programs
    facts: Mapping[str, str] = {}  #: what the sentence is based on
    remedy: str = ""  #: what to do about it; empty if there is nothing to do

    def __str__(self) -> str:
        return self.sentence
