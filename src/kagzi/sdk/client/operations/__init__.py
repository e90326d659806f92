"""What a client says about everything but runs."""
