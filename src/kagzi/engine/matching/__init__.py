"""Which worker gets which run: slots, reservations, leases, sessions, limits."""
