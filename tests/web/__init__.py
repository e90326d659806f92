"""The dashboard in a real browser, with real servers and workers. Numbers in names are those of the checks that the
dashboard was designed by."""
