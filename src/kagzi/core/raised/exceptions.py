"""What holds for any exception: the name under which it is recorded, and its frames."""

from ..public import PACKAGE


def qualified_name(cls: type[BaseException]) -> str:
    """The name an error is recorded and matched by: `kagzi.NotFound`, `app.orders.OutOfStock`, `ValueError` (builtins
    without their module, as people write them).

    A class of this package that is not exported is named after its nearest exported or built-in base: moving a file of
    this package must not affect recorded histories.
    """
    named = next(base for base in cls.__mro__ if not base.__module__.startswith(f"{PACKAGE}."))
    return named.__qualname__ if named.__module__ == "builtins" else f"{named.__module__}.{named.__qualname__}"


def drop_frames(error: BaseException | None) -> None:
    """Drops the tracebacks of an error that was answered, and of those before it. They hold the frames of the call, and
    so what it sent; and a frame that holds the error again would keep all of it until the garbage is collected."""
    while error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        drop_frames(error.__cause__)
        error = error.__context__
