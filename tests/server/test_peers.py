"""The health of a server with several processes: whichever is asked speaks for all."""

from kagzi.server.grpc.deadlines import Deadlines
from kagzi.server.health import Health
from kagzi.server.peers import PeerProcess, Peers, ProcessState


def health(peers: Peers, own_problem: str | None = None) -> Health:
    return Health(lambda: own_problem, frozenset(), Deadlines(), peers)


def process(number: int, state: ProcessState = ProcessState.READY, problem: str = "") -> PeerProcess:
    return PeerProcess(number, 100 + number, state, problem)


def test_a_server_with_one_process_speaks_for_itself() -> None:
    peers = Peers()
    assert (health(peers).problem(), peers.summary(), peers.author()) == (None, "", "")
    assert health(peers, "the store is down").problem() == "the store is down"


def test_a_process_that_accepts_calls_and_cannot_serve_them_makes_all_unhealthy() -> None:
    peers = Peers(1)
    peers.processes = (process(1), process(2, problem="the store is down"))
    assert health(peers).problem() == "process 2 of 2: the store is down"
    assert health(peers).own_problem() is None
    assert health(peers, "stuck").problem() == "stuck"


def test_what_the_supervisor_knows_about_this_process_is_older_than_what_it_knows_itself() -> None:
    peers = Peers(2)
    peers.processes = (process(1), process(2, problem="the store is down"))
    assert health(peers).problem() is None


def test_a_process_that_is_not_there_is_named_and_the_others_serve() -> None:
    for state in (ProcessState.STARTING, ProcessState.RESTARTING, ProcessState.STOPPING, ProcessState.ENDED):
        peers = Peers(1)
        peers.processes = (process(1), process(2, state, "of its last moments"), process(3))
        assert health(peers).problem() is None
        assert peers.summary() == f"2 of 3 processes; process 2: {state}"
        assert peers.author() == f"2 of 3 processes; process 2: {state}; this page is by process 1"
