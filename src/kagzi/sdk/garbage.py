"""For work that makes many objects at once, all of which stay: a parser, a package that is imported."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def none_collected() -> Generator[None]:
    """Meanwhile nobody looks for garbage, which would take as long as such work itself."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
