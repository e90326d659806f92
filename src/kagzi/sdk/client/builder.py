"""The base of what users refine, method by method, and then await."""

import warnings
from abc import ABC, abstractmethod
from typing import ClassVar


class Builder(ABC):
    """Warns if it is neither awaited nor refined."""

    _consequence: ClassVar[str]
    _is_settled = True  # awaited, or handed over to a refined copy; False once it is made

    @abstractmethod
    def _call(self) -> str:
        """How users have written it."""

    def __del__(self) -> None:
        if not self._is_settled:
            text = f"{self._call()} was never awaited: {self._consequence}. Write `await`."
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)
