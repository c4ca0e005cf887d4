import Foundation

/// The settings of `make torture` for tests that draw faults: the factor of their number, and the seed of the draws.
enum TortureSettings {
  static let effort = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  static let seed = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? 1
}
