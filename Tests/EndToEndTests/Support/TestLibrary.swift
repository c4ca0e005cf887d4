import Foundation
import TestSupport

/// A preloaded C library of `Tests/Torture`.
struct TestLibrary {
  let path: String

  init(_ name: String, in directory: TemporaryDirectory) async throws {
    path = directory.file(name + ".so")
    let source = Repository.root.appending(path: "Tests/Torture/\(name).c").path
    let made = try await Program(path: "/bin/sh").run([
      "-c", "for compiler in cc clang; do command -v $compiler > /dev/null && exec $compiler \"$@\"; done", "sh",
      "-shared", "-fPIC", "-O1", "-o", path, source, "-ldl",
    ])
    guard made.status == 0 else { throw Program.Failure(made.errors) }
  }
}
