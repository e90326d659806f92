"""The two terminals of a new user who makes ten mistakes, word for word: `kagzi dev` in one, commands in the other. The
file is updated like those of test_golden."""

import json
import re
import shutil
import time
from pathlib import Path

from tests.cli.transcripts import GOLDEN, Transcript, check
from tests.support.kagzi_process import RunningCommand, kagzi, running
from tests.support.timeouts import LOADED_MACHINE_S

_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4}"), "<time>"),
    (re.compile(r"until \d\d:\d\d:\d\d"), "until <time>"),
    (re.compile(r"Tried for \d+\.\d s"), "Tried for <n> s"),
    (re.compile(r"retrying (in \d+ ms|at once)"), "retrying in <n> ms"),
    (re.compile(r"\d+ frames? of kagzi hidden"), "<n> frames of kagzi hidden"),
    (re.compile(r"(?m)^ *shop.py is still being loaded.*\n"), ""),  # on a machine that is very busy
    (re.compile(r"(?m)^ *RuntimeWarning: Enable tracemalloc.*\n"), ""),
    (re.compile(r"(?m)^.* have waited for \d+ s and keep waiting.*\n"), ""),  # said after 10 s
    (re.compile(r"(?m)^ +\| +[~^]+\n"), ""),  # what Python underlines differs by version
)


class Terminals(Transcript):
    """`dev` is shown below the command that made it say something."""

    def __init__(self, directory: Path, dev: RunningCommand, address: str) -> None:
        super().__init__(lambda *arguments, stdin: kagzi(*arguments, cwd=directory, env={"KAGZI_ADDRESS": address}))
        self._directory = directory
        self._dev = dev
        self._shown = 0

    def about(self, mistake: str) -> None:
        self._lines += [f"# {mistake}", ""]

    def shows_output(self, pattern: str) -> None:
        """Show what `dev` has printed since, up to a line like this."""
        end = time.monotonic() + LOADED_MACHINE_S
        while not any(re.search(pattern, line) for line in self._dev.err[self._shown :]):
            assert time.monotonic() < end, f"no {pattern!r} in {self._dev.err[self._shown :]}"
            time.sleep(0.02)
        last = max(n for n, line in enumerate(self._dev.err) if n >= self._shown and re.search(pattern, line))
        self._lines += ["kagzi dev:", *(f"    {line}".rstrip() for line in self._dev.err[self._shown : last + 1]), ""]
        self._shown = last + 1

    def masked(self) -> str:
        text = super().masked().replace(str(self._directory), "<directory>")
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        return text


def test_ten_mistakes(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "shop.py", tmp_path)
    no_ports = ("--listen", "127.0.0.1:0", "--http", "off", "--no-reload")
    with running("dev", "shop.py", *no_ports, cwd=tmp_path) as dev:
        dev.says(r"Kagzi \S+ is ready")
        address = dev.says(r"^  server +(\S+)$")[1]
        dev.says("Press Ctrl-C to stop")
        seen = Terminals(tmp_path, dev, address)

        seen.about("a blocking call in a workflow")
        seen.shows_output("serves")
        seen.call("start", "blocks", "--wait")

        seen.about("a step that fails")
        seen.call("start", "failing-step", "coffee", "--wait", "--id", "coffee")
        seen.shows_output("the run failed in step 'price'")
        seen.call("start", "failing-twice", "coffee", "--wait")
        seen.shows_output("the run failed in step 'pay'")
        seen.call("explain", "coffee")

        seen.about("a forgotten await")
        seen.call("start", "forgotten-await", "tea", "--wait")
        seen.shows_output(r"ctx\.step\(\"price\"\)\.run")

        seen.about("a typo in a name")
        seen.call("start", "faling-step", "tea", "--id", "typo")
        seen.call("explain", "typo")

        seen.about("a signal of the wrong type")
        seen.call("start", "waits-for-approval", "--id", "approval")
        _until_sleeping(tmp_path, address, "approval")
        seen.call("signal", "approval", "approve", "maybe")
        seen.call("signal", "approval", "approve", "true")

        seen.about("an input of the wrong type")
        seen.call("start", "takes-a-number", "seven", "--wait")
        seen.call("start", "failing-step", "7")
        seen.call("start", "failing-step")

        seen.about("a result that cannot be stored")
        seen.call("start", "returns-a-file", "--wait")
        seen.shows_output("the run failed")

        seen.about("an exception in a workflow")
        seen.call("start", "breaks", "tea", "--wait")
        seen.shows_output("^ +\\| ZeroDivisionError")

        seen.about("a port that is taken")
        # Without the file: whether its warning comes before the server ends depends on how fast the worker starts.
        seen.call("dev", "--data", "other", "--listen", address, "--http", "off")

        assert dev.interrupt() == 0
        seen.about("a server that does not run")
        seen.call("list")
    check("first-hour", seen.masked())


def _until_sleeping(directory: Path, address: str, name: str) -> None:
    end = time.monotonic() + LOADED_MACHINE_S
    while time.monotonic() < end:
        done = kagzi("get", name, "--json", cwd=directory, env={"KAGZI_ADDRESS": address})
        if json.loads(done.stdout)["status"] == "sleeping":
            return
    raise AssertionError(f"{name} is not sleeping after {LOADED_MACHINE_S} s")
