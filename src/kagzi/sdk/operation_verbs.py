"""What a client says about everything but runs: schedules, workers, versions, namespaces and the like."""

from .connection import Connection


class OperationVerbs:
    """The part of a client for those who run Kagzi. Each noun is a small object of its own, made when it is first asked for."""

    _connection: Connection
    _namespace: str
