"""The test environment: a complete Kagzi in the process and event loop of a test, with a clock of its own."""
