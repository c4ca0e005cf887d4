import Foundation

/// The server programs of this machine, and the user that they run as.
struct PostgresInstallation: Sendable {
  private let programs: String
  /// nil: the current user. initdb refuses root, so root switches to another user.
  private let serverUser: String?

  /// Searches `PATH`, then the directories of Debian and Homebrew; the newest version wins.
  static func find() throws -> PostgresInstallation {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    var directories = path.split(separator: ":").map(String.init)
    for parent in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
      directories += names.sorted { $0.compare($1, options: .numeric) == .orderedDescending }.map {
        "\(parent)/\($0)/bin"
      }
    }
    guard
      let programs = directories.first(where: { directory in
        ["initdb", "pg_basebackup", "pg_ctl", "postgres"].allSatisfy {
          FileManager.default.isExecutableFile(atPath: "\(directory)/\($0)")
        }
      })
    else {
      throw PrivatePostgres.Failure(
        description: "initdb and pg_ctl were not found; install a PostgreSQL server (Debian: apt install postgresql)")
    }
    guard geteuid() == 0 else { return PostgresInstallation(programs: programs, serverUser: nil) }
    guard let user = ["postgres", "nobody"].first(where: { primaryGroup(of: $0) != nil }) else {
      throw PrivatePostgres.Failure(description: "root needs a user postgres or nobody to run the server as")
    }
    return PostgresInstallation(programs: programs, serverUser: user)
  }

  func giveToServerUser(_ directory: String) throws {
    guard let serverUser else { return }
    try Command.run(["chown", serverUser, directory])
  }

  func run(_ program: String, _ arguments: String...) throws {
    try run(program: "\(programs)/\(program)", arguments)
  }

  /// Runs a program as the server's user. Throws with its output if it fails.
  func run(program: String, _ arguments: [String]) throws {
    let command = [program] + arguments
    let wrapped =
      switch serverUser {
      case .none: command
      case .some(let user):
        ["setpriv", "--reuid=\(user)", "--regid=\(Self.primaryGroup(of: user) ?? user)", "--clear-groups"] + command
      }
    // A clean environment, and `/` because the server's user may have no access to the current directory.
    let elsewhere = ["sh", "-c", "cd / && exec \"$@\"", "sh"]
    let clean = ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C"]
    try Command.run(elsewhere + clean + wrapped)
  }

  private static func primaryGroup(of user: String) -> String? {
    getpwnam(user).map { String($0.pointee.pw_gid) }
  }
}
