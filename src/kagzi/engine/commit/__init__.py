"""Group commit: the journal, its write queues, and what follows from a commit."""
