"""Calls without gRPC: their two ends, the frames that connect them, and the WebSocket that carries the frames."""
