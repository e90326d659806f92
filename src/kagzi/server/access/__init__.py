"""Who calls, and whether they may: decided here for gRPC, WebSocket, HTTP and calls within the process alike."""
