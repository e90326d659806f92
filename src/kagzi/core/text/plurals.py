"""Numbers with their nouns, as people read them."""


def counted(count: int, noun: str, *, capped: bool = False) -> str:
    """`1 run`, `3 runs`, `10000+ runs`."""
    return f"{count}{'+' if capped else ''} {noun}{'' if count == 1 and not capped else 's'}"
