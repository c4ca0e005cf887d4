import Foundation
import TestSupport

/// A loopback server that receives reports: a Python program that writes its port into a file.
final class Receiver {
  let directory: TemporaryDirectory
  let port: Int
  private let running: Program.Running

  /// - Parameter arguments: further arguments, after the output directory and the port file.
  init(_ program: String, _ arguments: [String] = [], python: String = TestTools.python) async throws {
    directory = try TemporaryDirectory()
    try program.write(toFile: directory.file("receiver.py"), atomically: true, encoding: .utf8)
    try FileManager.default.createDirectory(atPath: directory.file("got"), withIntermediateDirectories: true)
    running = try Program(path: python).start(
      [directory.file("receiver.py"), directory.file("got"), directory.file("port")] + arguments)
    port = try await Rehearsal.port(in: directory.file("port"), of: running)
  }

  // SIGKILL, because not all Python servers end on SIGTERM.
  deinit { running.kill() }

  func stop() { running.kill() }

  var got: String { directory.file("got") }
}

/// Tools that `make test` installs from PyPI (Tests/requirements.txt). Without a network their tests are skipped.
enum TestTools {
  static let python =
    Repository.tool("python3")

  static var areInstalled: Bool { FileManager.default.isExecutableFile(atPath: python) }
}

struct Certificate {
  let certificate: String
  let key: String

  init(in directory: TemporaryDirectory) async throws {
    certificate = directory.file("certificate.pem")
    key = directory.file("key.pem")
    let made = try await Program(path: "/usr/bin/env").run([
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
      "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
    ])
    guard made.status == 0 else { throw Rehearsal.Failure(made.errors) }
  }
}

/// The receivers' programs. Each searches /proc for the secret during a delivery.
enum ReceiverProgram {
  private static let exposure = #"""
    import glob, json, os, sys

    def exposed(secret):
        seen = []
        for place in ("cmdline", "environ"):
            for path in glob.glob(f"/proc/[0-9]*/{place}"):
                try:
                    with open(path, "rb") as file:
                        if secret in file.read():
                            seen.append(path)
                except OSError:
                    pass
        return seen

    def publish(port):
        with open(port_file + ".new", "w") as file:
            file.write(str(port))
        os.rename(port_file + ".new", port_file)

    got, port_file = sys.argv[1:3]

    """#

  /// SMTP over TLS with a password; defers the first mail with 451. Arguments: certificate, key, password file.
  static let mail =
    exposure + #"""
      import asyncio, ssl, warnings
      from aiosmtpd.smtp import SMTP, AuthResult

      warnings.simplefilter("ignore")
      certificate, key, password = sys.argv[3:6]
      with open(password, "rb") as file:
          secret = file.read().strip()

      class Handler:
          attempts = 0

          async def handle_MAIL(self, server, session, envelope, address, options):
              Handler.attempts += 1
              if Handler.attempts == 1:
                  return "451 Later"
              envelope.mail_from = address
              return "250 OK"

          async def handle_DATA(self, server, session, envelope):
              number = len(glob.glob(f"{got}/*.eml"))
              with open(f"{got}/{number}.json", "w") as file:
                  json.dump({"from": envelope.mail_from, "to": envelope.rcpt_tos, "attempts": Handler.attempts,
                             "exposed": exposed(secret)}, file)
              with open(f"{got}/{number}.eml", "wb") as file:
                  file.write(envelope.original_content)
              return "250 OK"

      def authenticate(server, session, envelope, mechanism, data):
          return AuthResult(success=data.login == b"auditor" and data.password == secret)

      async def serve():
          context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
          context.load_cert_chain(certificate, key)
          server = await asyncio.get_running_loop().create_server(
              lambda: SMTP(Handler(), authenticator=authenticate, auth_required=True, auth_require_tls=False,
                           data_size_limit=1 << 28), "127.0.0.1", 0, ssl=context)
          publish(server.sockets[0].getsockname()[1])
          await asyncio.Event().wait()

      asyncio.run(serve())
      """#

  /// PUT over TLS with AWS Signature Version 4 (single chunk). Arguments: certificate, key, secret access key file.
  static let storage =
    exposure + #"""
      import hashlib, hmac, re, ssl
      from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
      """#

  /// SFTP with a password; writes the host key's fingerprint into the file `fingerprint`. Argument: password file.
  static let sftp =
    exposure + #"""
      import asyncio, asyncssh

      with open(sys.argv[3]) as file:
          password = file.read().strip()

      class Server(asyncssh.SSHServer):
          def begin_auth(self, username):
              return True

          def password_auth_supported(self):
              return True

          def validate_password(self, username, given):
              return username == "auditor" and given == password and not exposed(password.encode())

      class Files(asyncssh.SFTPServer):
          def __init__(self, channel):
              super().__init__(channel, chroot=got)

      async def serve():
          host_key = asyncssh.generate_private_key("ssh-ed25519")
          with open(f"{os.path.dirname(got)}/fingerprint", "w") as file:
              file.write(host_key.get_fingerprint())
          server = await asyncssh.listen("127.0.0.1", 0, server_host_keys=[host_key], server_factory=Server,
                                         sftp_factory=Files)
          publish(server.sockets[0].getsockname()[1])
          await asyncio.Event().wait()

      asyncio.run(serve())
      """#
}
