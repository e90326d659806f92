"""Offline replay: recorded histories played to local code, without a server."""
