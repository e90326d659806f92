"""Why a server cannot start, with the remedy in the text and the exit code of the process."""

from ..core.error_details import ErrorCode
from ..core.errors import KagziError

EXIT_FAILED = 1
EXIT_CANNOT_CONNECT = 4
EXIT_REFUSED = 5


class CannotStart(KagziError):
    """The server refuses to start: port taken, file in use, schema of another version, public without protection."""

    code = ErrorCode.PRECONDITION_FAILED
    exit_code = EXIT_REFUSED


class CannotConnect(CannotStart):
    """The database cannot be reached."""

    code = ErrorCode.UNAVAILABLE
    exit_code = EXIT_CANNOT_CONNECT
