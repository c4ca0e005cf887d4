"""Writes each POST as [path, body] into a numbered file. GET is answered with 405, POST with the number that its path
ends with, or 200.

usage: http_receiver.py FOLDER PORT_FILE [DATE OF EACH ANSWER]
"""
import http.server, json, os, sys
from receiver import got, publish


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(405)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open(f"{got}/{len(os.listdir(got)):04}", "w") as file:
            json.dump([self.path, body], file)
        last = self.path.rsplit("/", 1)[1]
        self.answer(int(last) if last.isdigit() else 200)

    def answer(self, status):
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def date_time_string(self, timestamp=None):
        return sys.argv[3] if len(sys.argv) > 3 else super().date_time_string(timestamp)

    def log_message(self, *arguments):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
publish(server.server_port)
server.serve_forever()
