"""Public names: everything that `kagzi` exports identifies itself as `kagzi.X`, wherever it is defined.

Tracebacks, representations, pickles and recorded errors name a thing by its module. Files may move; `kagzi.X` stays.
"""

import sys
from typing import Any, TypeVar, cast

PACKAGE = "kagzi"

T = TypeVar("T")


def exported(thing: T) -> T:
    """Marks a class or function that `kagzi` exports. Must be its outermost decorator."""
    named = cast("Any", thing)
    named.__module__ = PACKAGE
    # The name must exist in the module that the class names: annotations like "ErrorDetail | None" are resolved there.
    setattr(sys.modules[PACKAGE], named.__name__, thing)
    return thing
