"""Validation that needs only the values: for servers, and for clients that send their requests later."""
