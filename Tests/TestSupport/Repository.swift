import Foundation

/// The repository of the running tests.
public enum Repository {
  public static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// A program that the test set-up installs, such as `python3`.
  public static func tool(_ name: String) -> String { root.appending(path: ".build/test-tools/bin/\(name)").path }
}
