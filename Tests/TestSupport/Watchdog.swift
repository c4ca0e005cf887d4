import Foundation

/// Stops a server and removes its directory when this process ends for any reason. A shell waits for the end of its
/// standard input, a pipe that the kernel closes when this process ends.
final class Watchdog: Sendable {
  private let input: FileHandle

  init(directory: String) throws {
    let pipe = Pipe()
    input = pipe.fileHandleForWriting
    // Children must not inherit the write end, because the shell would wait for them.
    guard fcntl(input.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0 else {
      throw PrivatePostgres.Failure(description: "cannot set FD_CLOEXEC on the watchdog's pipe")
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", Self.script, "watchdog", directory]
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    process.standardInput = pipe.fileHandleForReading
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  /// SIGQUIT stops the server at once. Removal is repeated because its processes may still write.
  private static let script = """
    trap '' INT TERM HUP
    cat
    if read -r server < "$1/data/postmaster.pid"; then kill -QUIT "$server"; fi
    for attempt in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 1; done
    """
}
