import Foundation

/// A library of `Tests/Torture` that comes before the system's own in a program.
struct TestLibrary {
  let path: String

  /// - Parameters:
  ///   - name: of the C file.
  ///   - directory: where it is made.
  init(_ name: String, in directory: TemporaryDirectory) async throws {
    path = directory.file(name + ".so")
    let source = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Torture/\(name).c").path
    // One of the two comes with every Swift.
    let made = try await Program(path: "/bin/sh").run([
      "-c", "for compiler in cc clang; do command -v $compiler > /dev/null && exec $compiler \"$@\"; done", "sh",
      "-shared", "-fPIC", "-O1", "-o", path, source, "-ldl",
    ])
    guard made.status == 0 else { throw Rehearsal.Failure(made.errors) }
  }
}
