"""PUT over TLS with AWS Signature Version 4 (single chunk).

usage: storage_receiver.py FOLDER PORT_FILE CERTIFICATE KEY SECRET_ACCESS_KEY_FILE
"""
import hashlib, hmac, os, re, ssl, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from receiver import exposed, got, publish

certificate, key, password = sys.argv[3:6]
with open(password, "rb") as file:
    secret = file.read().strip()

def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()

def is_genuine(request, body):
    match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=AKID/(\d{8})/eu-test-1/s3/aws4_request, ?"
                         r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", request.headers["Authorization"])
    day, names, signature = match.groups()
    digest = hashlib.sha256(body).hexdigest()
    if request.headers["x-amz-content-sha256"] != digest:
        return False
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
    canonical = f"PUT\n{request.path}\n\n{headers}\n{names}\n{digest}"
    text = (f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{day}/eu-test-1/s3/aws4_request\n"
            + hashlib.sha256(canonical.encode()).hexdigest())
    derived = b"AWS4" + secret
    for part in (day, "eu-test-1", "s3", "aws4_request"):
        derived = sign(derived, part)
    return hmac.compare_digest(sign(derived, text).hex(), signature)

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = os.path.normpath(got + self.path)
        if self.path.startswith("/moved/"):
            # S3 answers like this in another region, without a new address.
            status = 301
        elif exposed(secret) or not is_genuine(self, body) or not path.startswith(got + "/"):
            status = 403
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(body)
            with open(f"{got}/order", "a") as file:
                file.write(self.path + "\n")
            status = 200
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
publish(server.server_address[1])
server.serve_forever()
