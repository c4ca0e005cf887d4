import Foundation

/// The number of random tests: 1, or the factor `TEST_EFFORT`. `TEST_SEED` selects other worlds.
enum Effort {
  static let factor = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1

  /// Seeds of the blocks of random tests: two in `make test`, four for each unit of effort in `make torture`.
  static let blocks =
    shop.map { [$0] } ?? (0..<UInt64(factor == 1 ? 2 : 4 * factor)).map { seed &* 1_000_003 &+ $0 }

  /// The seed of a single shop from a failure message: `TEST_SHOP`.
  static let shop = ProcessInfo.processInfo.environment["TEST_SHOP"].flatMap { UInt64($0) }

  private static let seed = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 0
}
