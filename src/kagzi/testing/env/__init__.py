"""The test environment: a whole Kagzi in the process and the event loop of a test, in a time of its own."""
