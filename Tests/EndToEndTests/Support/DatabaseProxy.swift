import Foundation

/// A proxy to the database that counts what a program sends. At a given count it kills, signals, pauses or cuts off the
/// program, or ends one connection at one message; no clock is needed.
final class DatabaseProxy {
  /// A message of the protocol (PostgreSQL, "Message Formats"). `>Q` is a query, `<Z` ReadyForQuery, `>` the startup.
  struct Message: CustomStringConvertible {
    var kind: String
    var number: Int
    var isHalf: Bool

    var description: String { "\(isHalf ? "within" : "before") the \(number). \(kind)" }
  }

  enum Ending: String {
    /// SIGKILL to the sender.
    case kill
    case terminate
    case hangUp
    /// Notifies the test and holds everything until `goOn`.
    case hold
    /// Forwards nothing more, in either direction; connections stay open.
    case stall
  }

  private let directory: TemporaryDirectory
  private let running: Program.Running
  let conninfo: String

  /// - Parameter last: the count of the first message that is not forwarded; 0: forwards everything.
  init(to conninfo: String, _ ending: Ending = .kill, at last: Int = 0, cut: Message? = nil) async throws {
    directory = try TemporaryDirectory()
    let host = conninfo.split(separator: " ").first { $0.hasPrefix("host=") }?.dropFirst(5) ?? ""
    try Self.program.write(toFile: directory.file("passage.py"), atomically: true, encoding: .utf8)
    running = try Program(path: "/usr/bin/env").start([
      "python3", directory.file("passage.py"), directory.file(".s.PGSQL.5432"), "\(host)/.s.PGSQL.5432",
      ending.rawValue, "\(last)", directory.file("count"), cut?.kind ?? "", "\(cut?.number ?? 0)",
      cut?.isHalf == true ? "half" : "",
    ])
    self.conninfo = conninfo.replacing("host=\(host)", with: "host=\(directory.url.path)")
    while !FileManager.default.fileExists(atPath: directory.file("count")) {
      guard running.process.isRunning else { throw Rehearsal.Failure(await running.finish().errors) }
      await pause()
    }
  }

  func stop() { running.kill() }

  deinit { stop() }

  var count: Int {
    let text = try? String(contentsOfFile: directory.file("count"), encoding: .utf8)
    return text.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) } ?? 0
  }

  func goOn() throws { try Data().write(to: URL(fileURLWithPath: directory.file("count.go"))) }

  func messages() async throws -> [String: Int] {
    while true {
      let kinds = try JSONDecoder().decode(
        [String: Int].self, from: Data(contentsOf: URL(fileURLWithPath: directory.file("count.kinds"))))
      if kinds["begun"] == kinds["ended"] { return kinds }
      await pause()
    }
  }

  func total() async throws -> Int {
    _ = try await messages()
    return count
  }

  private static let program = #"""
    import asyncio, collections, json, os, signal, socket, struct, sys

    path, server, ending, last, counter, cut_kind, cut_number, cut_half = sys.argv[1:9]
    last, cut_number = int(last), int(cut_number)
    count = 0
    kinds = collections.Counter()
    signals = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "hangUp": signal.SIGHUP}
    never = asyncio.Event()
    held = False

    def tell():
        for name, content in ((counter + ".kinds", json.dumps(kinds)), (counter, str(count))):
            with open(name + ".new", "w") as file:
                file.write(content)
            os.rename(name + ".new", name)

    async def message(reader, kind):
        """One message and its kind. The first one of a client has no letter."""
        letter = b"" if kind == ">" and not reader.was_begun else await reader.readexactly(1)
        reader.was_begun = True
        length = await reader.readexactly(4)
        rest = await reader.readexactly(struct.unpack("!I", length)[0] - 4)
        return kind + letter.decode(), letter + length + rest

    async def forward_messages(reader, writer, end, direction):
        reader.was_begun = False
        try:
            while True:
                kind, data = await message(reader, direction)
                kinds[kind] += 1
                if kind == cut_kind and kinds[kind] == cut_number:
                    writer.write(data[:len(data) // 2] if cut_half else b"")
                    await writer.drain()
                    kinds["cut"] = 1
                    break
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
            end.close()

    async def forward(reader, writer, sender):
        global count, held
        try:
            while data := await reader.read(1 << 16):
                if sender:
                    count += 1
                    if last and count >= last and (ending in ("kill", "stall") or count == last):
                        held = ending == "hold"
                        tell()
                        if ending in signals and count == last:
                            os.kill(sender, signals[ending])
                if last and count >= last and ending in ("kill", "stall"):
                    if ending == "kill":
                        break
                    await never.wait()
                while held and sender:
                    held = not os.path.exists(counter + ".go")
                    await asyncio.sleep(0.002)
                writer.write(data)
                await writer.drain()
        finally:
            # The server may die within a message. Closing the connection tells the program.
            writer.close()

    async def handle(reader, writer):
        credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        sender = struct.unpack("3i", credentials)[0]
        kinds["begun"] += 1
        tell()
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(server)
        except OSError:
            writer.close()
            kinds["ended"] += 1
            tell()
            return
        if cut_kind:
            both = (forward_messages(reader, server_writer, writer, ">"),
                    forward_messages(server_reader, writer, server_writer, "<"))
        else:
            both = forward(reader, server_writer, sender), forward(server_reader, writer, 0)
        await asyncio.gather(*both, return_exceptions=True)
        writer.close()
        server_writer.close()
        kinds["ended"] += 1
        tell()

    async def main():
        listening = await asyncio.start_unix_server(handle, path)
        tell()
        async with listening:
            await listening.serve_forever()

    asyncio.run(main())
    """#
}
