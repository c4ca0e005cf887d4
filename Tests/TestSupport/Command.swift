import Foundation

/// Runs a program to its end.
///
/// Foundation's `Process` waits until every descendant has closed a socket that it hands down, so a program that
/// leaves a server behind, as `pg_ctl start` does, would never end for it. Here it ends when the program does.
enum Command {
  /// Searches `PATH` for the first argument. Throws, with what the program printed, unless it exits with 0.
  static func run(_ arguments: [String]) throws {
    let output = URL(fileURLWithPath: "/tmp/output-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: output) }
    let status = try spawn(arguments, output: output.path)
    guard status == 0 else {
      let text = String(decoding: (try? Data(contentsOf: output)) ?? Data(), as: UTF8.self)
      throw PrivatePostgres.Failure(description: "\(arguments.joined(separator: " ")): \(text)")
    }
  }

  /// The status as `waitpid` gives it.
  private static func spawn(_ arguments: [String], output: String) throws -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
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
      throw PrivatePostgres.Failure(description: "\(arguments[0]): \(String(cString: strerror(failure)))")
    }
    return status
  }
}
