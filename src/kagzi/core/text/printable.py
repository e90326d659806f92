"""Makes text from outside safe to print: in a log, and in exceptions that Python prints."""

MARGIN = "  | "
"""The prefix of each further line of a log entry, so that none can be mistaken for an entry of its own."""


def escape(text: str) -> str:
    """One line without control characters: line breaks, ANSI escapes, bidirectional controls."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def escape_lines(text: str) -> str:
    """The same for several lines, which stay: line feeds and tabs are kept."""
    return text if text.isprintable() else "".join(map(_escaped_but_lines, text))


def _escaped_but_lines(char: str) -> str:
    return char if char in "\n\t" else escape(char)


def with_margin(text: str) -> str:
    """The lines of a text, escaped and prefixed with the margin."""
    return "\n".join(MARGIN + escape(line) for line in text.rstrip("\n").split("\n"))


def brief(text: str, limit_chars: int) -> str:
    """One line of at most `limit_chars`."""
    line = escape(text.strip())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 4]} ..."
