import Foundation

/// How hard random tests try: 1, or what `TEST_EFFORT` says, for a night of searching. `TEST_SEED` draws other worlds.
enum Effort {
  static let factor = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1

  /// Seeds of the blocks that random tests are cut into, so that blocks run side by side.
  static let blocks = (0..<UInt64(4 * factor)).map { seed &* 1_000_003 &+ $0 }

  private static let seed = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 0
}
