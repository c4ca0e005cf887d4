import Foundation

/// How hard random tests try: 1, or what `TEST_EFFORT` says, for a night of searching. `TEST_SEED` draws other worlds.
enum Effort {
  static let factor = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1

  /// Seeds of the blocks that random tests are cut into, so that blocks run side by side.
  static let blocks = shop.map { [$0] } ?? (0..<UInt64(4 * factor)).map { seed &* 1_000_003 &+ $0 }

  /// The seed of one shop alone, `TEST_SHOP`, which a failure has printed.
  static let shop = ProcessInfo.processInfo.environment["TEST_SHOP"].flatMap { UInt64($0) }

  private static let seed = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 0
}
