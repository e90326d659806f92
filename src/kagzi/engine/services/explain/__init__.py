"""Why a run is where it is, in words."""
