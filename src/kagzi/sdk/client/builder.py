"""The base class of builders, which users refine method by method and then await."""

import warnings
from abc import ABC, abstractmethod
from typing import ClassVar


class Builder(ABC):
    """Warns if it is dropped without being awaited or refined."""

    _consequence: ClassVar[str]
    _is_settled = True  # awaited, or replaced by a refined copy; False after __init__

    @abstractmethod
    def _call(self) -> str:
        """The call as the user wrote it."""

    def __del__(self) -> None:
        if not self._is_settled:
            text = f"{self._call()} was never awaited: {self._consequence}. Write `await`."
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)
