"""The benchmark runs and writes what it says it writes. How fast it is, is not a test."""
