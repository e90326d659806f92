"""The foundation: pure values and decisions. No I/O, no clock, no event loop, no randomness, no logging."""
