import Foundation

/// A proxy to the simulated Apple with transport faults, mixed-up answers and wrong certificates.
final class FaultyApple {
  enum Way: String, Sendable {
    case forward
    /// Reads the request and never answers.
    case hang
    case drip
    /// Resets the connection after the request.
    case reset
    /// Resets the connection within the answer.
    case cut
    /// 5 MB that decompress to 1 GiB.
    case bomb
    case endless
    case headers
    case nonsense
    /// Redirects to the correct answer.
    case redirect
    /// A captive portal's page with status 200.
    case page
    /// Each answer twice, so that the second one is read for the next request.
    case echo
    /// The first answer for every request of a kind.
    case another
    case duplicates
    case reversed
  }

  enum Certificate: String, Sendable {
    case none
    case trusted
    case expired
    case otherHost
    case foreign
  }

  private let directory: TemporaryDirectory
  private let running: Program.Running
  private let port: Int
  private let certificate: Certificate

  init(before simulator: Int, _ way: Way, certificate: Certificate = .none) async throws {
    directory = try TemporaryDirectory()
    self.certificate = certificate
    if certificate != .none { try await Self.certify(certificate, in: directory) }
    try Self.program.write(toFile: directory.file("moody.py"), atomically: true, encoding: .utf8)
    running = try Program(path: "/usr/bin/env").start([
      "python3", directory.file("moody.py"), "\(simulator)", way.rawValue, directory.file("port"),
      certificate == .none ? "" : directory.file("chain.pem"),
    ])
    port = try await Rehearsal.port(in: directory.file("port"), of: running)
  }

  deinit { running.kill() }

  var environment: [String: String] {
    let address = certificate == .none ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)"
    var environment = [
      "NIGHT_AUDIT_APPSTORE_PRODUCTION_URL": "\(address)/production",
      "NIGHT_AUDIT_APPSTORE_SANDBOX_URL": "\(address)/sandbox",
      "NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_URL": "\(address)/production/verifyReceipt",
      "NIGHT_AUDIT_APPSTORE_VERIFY_RECEIPT_SANDBOX_URL": "\(address)/sandbox/verifyReceipt",
    ]
    if certificate != .none {
      environment["LD_PRELOAD"] = directory.file("roots.so")
      environment["TRUSTED_ROOTS"] = directory.file("trusted.pem")
    }
    return environment
  }

  /// Creates a trusted and an untrusted root, and the server's certificate. The preloaded library replaces the system's
  /// roots.
  private static func certify(_ certificate: Certificate, in directory: TemporaryDirectory) async throws {
    let name = certificate == .otherHost ? "elsewhere.example.com" : "localhost"
    let days = certificate == .expired ? "-1" : "1"
    let root = certificate == .foreign ? "unknown" : "trusted"
    let script = """
      set -e
      cd "$1"
      for root in trusted unknown; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$root" \
          -keyout $root.key -out $root.pem
      done
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=\(name) -keyout leaf.key -out leaf.csr
      printf 'subjectAltName=DNS:\(name)\\n' > names
      python3 - <<END > times
      import datetime
      now = datetime.datetime.now(datetime.timezone.utc)
      for day in -2, \(days):
          print((now + datetime.timedelta(days=day)).strftime("%Y%m%d%H%M%SZ"))
      END
      printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index\\nserial=serial\\nnew_certs_dir=.\\ndefault_md=sha256\\npolicy=p\\n' > ca
      printf '[p]\\ncommonName=supplied\\n' >> ca
      : > index
      echo 01 > serial
      openssl ca -batch -config ca -cert \(root).pem -keyfile \(root).key -in leaf.csr -out leaf.pem -notext \
        -extfile names -startdate "$(sed -n 1p times)" -enddate "$(sed -n 2p times)"
      cat leaf.pem leaf.key > chain.pem
      """
    let made = try await Program(path: "/bin/sh").run(["-c", script, "sh", directory.url.path])
    guard made.status == 0 else { throw Rehearsal.Failure(made.errors) }
    _ = try await TestLibrary("roots", in: directory)
  }

  private static let program = #"""
    import asyncio, gzip, json, os, socket, ssl, struct, sys

    simulator, way, port_file, chain = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    never = asyncio.Event()
    bomb = gzip.compress(bytes(1 << 30), 1) if way == "bomb" else b""
    first = {}

    async def message(reader):
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return head, await reader.readexactly(length)

    async def truth(head, body):
        reader, writer = await asyncio.open_connection("127.0.0.1", simulator)
        try:
            writer.write(head + body)
            return await message(reader)
        finally:
            writer.close()

    def with_body(head, body):
        lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"content-length:")]
        return b"\r\n".join(lines + [b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body

    def change(value, change_list):
        if isinstance(value, dict):
            return {key: change(inner, change_list) for key, inner in value.items()}
        return change_list([change(inner, change_list) for inner in value]) if isinstance(value, list) else value

    def reset(writer):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    def ok(kind, body, more=b""):
        return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n" % (kind, more, len(body)) + body

    async def answer(head, body, writer):
        path = head.split(b" ", 2)[1]
        if way == "hang":
            await never.wait()
        elif way == "reset":
            reset(writer)
            raise ConnectionError
        elif way == "bomb":
            writer.write(ok(b"application/json", bomb, b"Content-Encoding: gzip\r\n"))
        elif way == "endless":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 200000000\r\n\r\n{")
            for _ in range(200):
                writer.write(b" " * 1000000)
                await writer.drain()
        elif way == "headers":
            writer.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
            for _ in range(200):
                writer.write(b"x" * 1000000)
                await writer.drain()
        elif way == "nonsense":
            writer.write(b"\x00\xff\x16\x03 220 mail.example.com ESMTP\r\n\r\n" * 20)
        elif way == "redirect" and not path.startswith(b"/elsewhere"):
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere%s\r\nContent-Length: 0\r\n\r\n" % path)
        elif way == "page":
            writer.write(ok(b"text/html", b"<html><body>Welcome to our network. Please accept.</body></html>"))
        else:
            reply_head, reply = await truth(head.replace(b"/elsewhere", b"", 1), body)
            whole = reply_head + reply
            if way == "drip":
                for byte in whole:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.3)
            elif way == "cut":
                writer.write(whole[: len(reply_head) + len(reply) // 2])
                await writer.drain()
                reset(writer)
                raise ConnectionError
            elif way == "echo":
                writer.write(whole + whole)
            elif way == "another" and reply_head.startswith(b"HTTP/1.1 200"):
                # Questions of a kind differ after the last slash of the path, or in their bodies. An empty notification
                # history may be a correct answer to each of them.
                kind = path.split(b"?")[0].rsplit(b"/", 1)[0]
                writer.write(whole if b'"notificationHistory":[]' in reply else first.setdefault(kind, whole))
            elif way in ("duplicates", "reversed"):
                change_list = (lambda list: list + list) if way == "duplicates" else (lambda list: list[::-1])
                try:
                    reply = json.dumps(change(json.loads(reply), change_list)).encode()
                except ValueError:
                    pass
                writer.write(with_body(reply_head, reply))
            else:
                writer.write(whole)
        await writer.drain()

    async def handle(reader, writer):
        try:
            while True:
                await answer(*await message(reader), writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def main():
        context = None
        if chain:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(chain)
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context, backlog=1000, limit=1 << 24)
        with open(port_file + ".new", "w") as file:
            file.write(str(server.sockets[0].getsockname()[1]))
        os.rename(port_file + ".new", port_file)
        async with server:
            await server.serve_forever()

    asyncio.run(main())
    """#
}
