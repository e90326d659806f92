"""Text validation: refuses arguments of verbs that cannot be stored, as commands with such text are refused."""

from ..core.errors import InvalidArgument
from ..core.run.refusals import unstorable
from ..core.text.storable import is_storable


def require_storable(**texts: str) -> None:
    """Raises InvalidArgument for the first of these that cannot be stored."""
    for field, text in texts.items():
        if not is_storable(text):
            raise InvalidArgument(unstorable(field).error.message, field=field)
