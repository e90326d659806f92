"""Validation that needs nothing but the values: for servers, and for clients that write now and ask later."""
