"""Error texts for clients while the server's database is down. They do not reveal where it is."""

from .errors import DOWN, DOWN_DATABASE, Contended, ServerUnavailable, StoreBroken, StoreLost

DATABASE = "the server's database"


def database_words(error: BaseException) -> str:
    """What is wrong with the database, as a sentence without its full stop."""
    match error:
        case Contended():
            return f"{DATABASE} is locked by another session"
        case StoreLost():
            return "the files of the server's database were deleted or replaced: restart the server"
        case StoreBroken():
            return f"{DATABASE} returns errors"
        case TimeoutError():
            return f"{DATABASE} does not respond"
        case _:
            return f"{DATABASE} cannot be reached"


def database_down(words: str) -> ServerUnavailable:
    """Makes the error for clients."""
    return ServerUnavailable(f"{words}. Try again.", metadata={DOWN: DOWN_DATABASE})
