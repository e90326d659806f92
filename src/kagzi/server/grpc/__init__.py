"""gRPC: listener, interceptor, streams, and what their calls share. `services` has one file for each service."""
