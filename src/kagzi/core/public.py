"""The public face: what `kagzi` exports says that it is `kagzi.X`, whichever file it is written in.

Tracebacks, representations, pickles and recorded errors name a thing by its module. Files move; `kagzi.X` stays.
"""

import sys
from typing import Any, TypeVar, cast

PACKAGE = "kagzi"

T = TypeVar("T")


def exported(thing: T) -> T:
    """Marks a class or function as one that `kagzi` exports; outermost of its decorators."""
    named = cast("Any", thing)
    named.__module__ = PACKAGE
    # As of any class, its name is found in the module it names: there annotations like "ErrorDetail | None" are looked
    # up.
    setattr(sys.modules[PACKAGE], named.__name__, thing)
    return thing
