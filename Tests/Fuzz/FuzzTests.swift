import Foundation
import Testing

/// Random bytes and mutated genuine data for every decoder, with the same inputs in every run.
/// `TEST_EFFORT` sets another amount, `TEST_SEED` another seed; `make fuzz` runs longer.
@Suite struct FuzzTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let inputs = 15_000 * (environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1)
  private static let seed = environment["TEST_SEED"].flatMap { UInt64($0) } ?? 1

  @Test func fuzzedInputsNeitherCrashNorVerify() throws {
    let corpus = try FuzzCorpus()
    let run = try FuzzRun(0..<Self.inputs, seed: Self.seed, corpus: corpus, harness: FuzzHarness(corpus))
    for decoder in FuzzDecoder.allCases {
      let tally = try #require(run.tallies[decoder])
      #expect(tally.inputs > 300, "\(decoder)")
      // Otherwise the inputs would be mere noise, or the decoder would reject everything.
      #expect(tally.accepted > 0 && tally.accepted < tally.inputs, "\(decoder): \(tally)")
    }
  }

  @Test func equalSeedsGiveEqualInputs() throws {
    let corpus = try FuzzCorpus()
    let one = FuzzGenerator(corpus: corpus, seed: 7)
    let other = FuzzGenerator(corpus: corpus, seed: 8)
    #expect((0..<100).allSatisfy { one.input($0) == FuzzGenerator(corpus: corpus, seed: 7).input($0) })
    #expect((0..<100).contains { one.input($0) != other.input($0) })
  }
}
