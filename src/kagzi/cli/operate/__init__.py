"""Commands for operators of servers and workers."""
