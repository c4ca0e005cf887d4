"""A relay between a program and the server that counts the server's ReadyForQuery messages."""

import os
import socket
import threading

READY = ord("Z")


class CountingRelay:
    """Listens in its own directory, which replaces the server's as `PGHOST`."""

    def __init__(self, directory, server):
        os.mkdir(directory)
        self.directory = directory
        self.server = os.path.join(server, ".s.PGSQL.5432")
        self.ready = 0
        self.lock = threading.Lock()
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(os.path.join(directory, ".s.PGSQL.5432"))
        self.listening.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listening.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            threading.Thread(target=self.forward, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.forward, args=(server, client, True), daemon=True).start()

    def forward(self, source, target, counts):
        # A message of the server is a letter, a length and content (PostgreSQL, chapter "Message Formats").
        waiting = b""
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
                if not counts:
                    continue
                waiting += data
                start = 0
                while len(waiting) - start >= 5:
                    length = 1 + int.from_bytes(waiting[start + 1:start + 5], "big")
                    if len(waiting) - start < length:
                        break
                    if waiting[start] == READY:
                        with self.lock:
                            self.ready += 1
                    start += length
                waiting = waiting[start:]
        except OSError:
            pass
        finally:
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
