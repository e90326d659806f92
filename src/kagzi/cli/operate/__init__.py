"""Commands for those who run servers and workers."""
