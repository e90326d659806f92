"""Group commit: the journal, its write queues, and the effects of a commit."""
