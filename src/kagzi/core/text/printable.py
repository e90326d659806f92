"""Text from outside, made safe to print: in a log, and in what Python prints of an exception."""

MARGIN = "  | "
"""Begins every line of a text that follows a line of a log: none of them can be taken for a line of its own."""


def escape(text: str) -> str:
    """One line without control characters: line breaks, ANSI escapes, marks that turn the direction of text."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def with_margin(text: str) -> str:
    """The lines of a text, escaped, each behind the margin."""
    return "\n".join(MARGIN + escape(line) for line in text.rstrip("\n").split("\n"))


def brief(text: str, limit_chars: int) -> str:
    """One line, and not too long."""
    line = escape(text.strip())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 4]} ..."
