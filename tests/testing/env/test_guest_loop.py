"""The loop that the server of a test environment lives on."""

import asyncio
import threading

from kagzi.testing.env.guest_loop import GuestLoop


async def test_a_call_from_another_thread_wakes_the_host() -> None:
    guest = GuestLoop(asyncio.get_running_loop(), 0.0)
    called = asyncio.Event()
    thread = threading.Timer(0.05, guest.call_soon, (called.set,))  # as the collector does; the host waits by then
    thread.start()
    await called.wait()
    guest.close()
