"""What is written in the user's own transaction."""
