"""What a server counts of what it does: plain numbers, which others make text of."""
