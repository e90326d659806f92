"""One file for each gRPC service, or part of one: decode the request, call the engine, encode the response."""
