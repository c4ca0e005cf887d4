import Foundation

/// Runs programs to their end.
///
/// Foundation's `Process` waits until every descendant has closed a socket that it hands down, so a program that
/// leaves a server behind, as `pg_ctl start` does, would never end for it, and neither would one that started while
/// another did. Here a program ends when it does.
package enum Command {
  /// Why a program did not end with 0, with what it printed.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Searches `PATH` for the first argument. Throws `Failure` unless it exits with 0.
  ///
  /// - Parameter input: what it reads from standard input.
  /// - Returns: what it printed to standard output.
  @discardableResult
  package static func run(_ arguments: [String], input: String = "") throws -> Data {
    let directory = URL(fileURLWithPath: "/tmp/command-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }
    let files = ["in", "out", "err"].map { directory.appendingPathComponent($0) }
    try Data(input.utf8).write(to: files[0])
    let status = try spawn(arguments, files: files.map(\.path))
    let output = (try? Data(contentsOf: files[1])) ?? Data()
    guard status == 0 else {
      let printed = output + ((try? Data(contentsOf: files[2])) ?? Data())
      throw Failure(description: "\(arguments.joined(separator: " ")): \(String(decoding: printed, as: UTF8.self))")
    }
    return output
  }

  /// - Parameter files: what becomes standard input, output and error.
  /// - Returns: the status as `waitpid` gives it.
  private static func spawn(_ arguments: [String], files: [String]) throws -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, files[0], O_RDONLY, 0)
    for descriptor in [1, 2] {
      posix_spawn_file_actions_addopen(
        &actions, Int32(descriptor), files[descriptor], O_WRONLY | O_CREAT | O_EXCL, 0o600)
    }
    // Threads of a dispatch queue block signals, and a program would inherit that.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var mask = sigset_t()
    sigemptyset(&mask)
    posix_spawnattr_setsigmask(&attributes, &mask)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

    var pointers = arguments.map { strdup($0) }
    pointers.append(nil)
    defer { pointers.forEach { free($0) } }
    var process: pid_t = 0
    let failure = posix_spawnp(&process, arguments[0], &actions, &attributes, pointers, environ)
    var status: Int32 = -1
    while failure == 0, waitpid(process, &status, 0) == -1, errno == EINTR {}
    guard failure == 0 else {
      throw Failure(description: "\(arguments[0]): \(String(cString: strerror(failure)))")
    }
    return status
  }
}
