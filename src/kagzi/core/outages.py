"""What clients are told while a server's database does not do what it is asked: in words that tell nobody where it is."""

from .errors import DOWN, DOWN_DATABASE, Contended, ServerUnavailable, StoreBroken, StoreLost

DATABASE = "the server's database"


def database_words(error: BaseException) -> str:
    """What is wrong with the database; a sentence without its full stop."""
    match error:
        case Contended():
            return f"{DATABASE} is locked by somebody else"
        case StoreLost():
            return "the files of the server's database were taken away: the server must be started again"
        case StoreBroken():
            return f"{DATABASE} fails on what it is asked"
        case TimeoutError():
            return f"{DATABASE} does not answer"
        case _:
            return f"{DATABASE} cannot be reached"


def database_down(words: str) -> ServerUnavailable:
    """The error that says so."""
    return ServerUnavailable(f"{words}. Try again.", metadata={DOWN: DOWN_DATABASE})
