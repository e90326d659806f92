"""Runs a workflow again and again, each time with a crash at another boundary."""
