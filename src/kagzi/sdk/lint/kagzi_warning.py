"""The warning that workers issue for findings."""

from ...core.public import exported


@exported
class KagziWarning(UserWarning):
    """A warning about workflow code that works, but perhaps not as its author expects."""
