"""The structs of requests and responses of the HTTP API, one file for each noun."""
