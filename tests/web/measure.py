"""How much the checks of the dashboard do: a little in `make test`, all of it in the campaign (`make web-campaign`)."""

import os

FULL = bool(os.environ.get("KAGZI_TEST_CAMPAIGNS"))
