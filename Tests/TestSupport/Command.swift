import Foundation

/// Runs programs to their end. Foundation's `Process` waits until every descendant has closed an inherited socket, so
/// it would wait forever for `pg_ctl start`, or if another program was started at the same time.
package enum Command {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Searches `PATH` for the first argument and returns standard output. Throws `Failure` unless the program exits with
  /// 0.
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

  /// Spawns with these files as standard streams; returns the status of `waitpid`.
  private static func spawn(_ arguments: [String], files: [String]) throws -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, files[0], O_RDONLY, 0)
    for descriptor in [1, 2] {
      posix_spawn_file_actions_addopen(
        &actions, Int32(descriptor), files[descriptor], O_WRONLY | O_CREAT | O_EXCL, 0o600)
    }
    // Unblocks signals, because threads of a dispatch queue block them and children inherit the mask.
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
