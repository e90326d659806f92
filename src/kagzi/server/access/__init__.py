"""Authentication and authorization of callers: one implementation for gRPC, WebSocket, HTTP and in-process calls."""
