"""Commands that people are told to type: what they copy does what it says, whatever is in it."""

import shlex

from .printable import escape


def quoted(word: object) -> str:
    """An argument of a proposed command, for a shell and without control characters."""
    return shlex.quote(escape(str(word)))
