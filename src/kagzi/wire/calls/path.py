"""The HTTP path of calls as WebSocket messages. Separate from `frames`, for modules that only name the path."""

PATH = "/v1/calls"
