"""What a server measures: plain numbers, formatted elsewhere."""
