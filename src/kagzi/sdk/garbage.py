"""For work that creates many long-lived objects at once, such as parsing or importing a package."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def none_collected() -> Generator[None]:
    """Disables the garbage collector, which would take as long as such work itself."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
