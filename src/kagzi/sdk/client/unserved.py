"""Warnings of servers about workflows that no worker serves: logged once per name, or printed by the command line."""

import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

logger = logging.getLogger("kagzi.client")

_REMEMBERED = 1_000


class UnservedNames:
    """`show` receives the warnings. Workflows that a worker of this process serves are left out: it may be starting."""

    def __init__(self, show: Callable[[str], None] = logger.warning) -> None:
        self.show = show
        self._served_here: list[str] = []
        self._warned: set[tuple[str, str]] = set()

    @contextmanager
    def shown_by(self, show: Callable[[str], None]) -> Generator[None]:
        """Within this context, warnings are shown as if none had been shown before."""
        before, self.show = self.show, show
        self._warned.clear()
        try:
            yield
        finally:
            self.show = before

    def served(self, names: Iterable[str]) -> None:
        """A worker of this process starts to serve these workflows."""
        self._served_here.extend(names)

    def served_no_longer(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._served_here:
                self._served_here.remove(name)

    def warn(self, namespace: str, name: str, warning: str) -> None:
        """Show the server's warning about this name, if there is one, once."""
        if not warning or name in self._served_here or (namespace, name) in self._warned:
            return
        if len(self._warned) >= _REMEMBERED:
            self._warned.clear()
        self._warned.add((namespace, name))
        self.show(warning)


UNSERVED = UnservedNames()
