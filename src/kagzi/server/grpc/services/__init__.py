"""One gRPC service, or one part of it, a file: read the message, ask the engine, write the answer."""
