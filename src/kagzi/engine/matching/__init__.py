"""Matches runs and workers: slots, reservations, leases, sessions, limits."""
