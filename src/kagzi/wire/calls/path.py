"""Where calls are served as WebSocket messages. Apart from `frames`, for those who only say where that is."""

PATH = "/v1/calls"
