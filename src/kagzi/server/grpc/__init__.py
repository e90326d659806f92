"""gRPC: listener, interceptor, streams, and what their calls share. One service a file in `services`."""
