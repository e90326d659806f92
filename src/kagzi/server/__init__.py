"""The server: gRPC services, the call interceptor, HTTP and configuration. `app.py` wires them together."""
