"""The foundation: pure values and decisions. No I/O, no clock, no loop, no rng, no logging."""
