"""The server: gRPC services, the interceptor of every call, HTTP, configuration. `app.py` puts it all together."""
