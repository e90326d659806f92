"""What a test suite pays for the kit before it uses it."""

import subprocess
import sys


def test_importing_the_kit_and_the_replayer_loads_no_server_and_no_command_line() -> None:
    code = (
        "import sys, kagzi.testing; assert 'grpc' not in sys.modules; "
        "from kagzi.testing import History, Replayer; "
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('click', 'rich', 'starlette', 'uvicorn') "
        "or name.startswith(('kagzi.server', 'kagzi.engine', 'kagzi.store', 'kagzi.embedded', 'kagzi.cli'))]; "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
