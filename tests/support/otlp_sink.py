"""A collector of spans that reads them and keeps nothing: `python -m tests.support.otlp_sink` prints its port."""

import socketserver


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while self.rfile.readline():
            length = 0
            while line := self.rfile.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.rfile.read(length)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


if __name__ == "__main__":
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        print(server.server_address[1], flush=True)
        server.serve_forever()
