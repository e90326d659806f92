"""Campaigns are run by name (`make campaigns`, `make rolling` ...): whoever runs all tests does not get them by
accident."""

import os

collect_ignore_glob = [] if os.environ.get("KAGZI_TEST_CAMPAIGNS") else ["test_*.py"]
