"""What requests and answers of the HTTP API look like, one file a noun."""
