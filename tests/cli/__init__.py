"""The command line, as real processes: what they print, where, and how they end."""
