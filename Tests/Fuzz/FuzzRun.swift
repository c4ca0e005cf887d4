struct FuzzRun {
  struct Tally {
    var inputs = 0
    var accepted = 0
    var slowest = Duration.zero
  }

  struct Finding: Error, CustomStringConvertible {
    var seed: UInt64
    var number: Int
    var input: [UInt8]
    var violation: FuzzHarness.Violation

    var description: String {
      "seed \(seed), input \(number), \(input.count) bytes for decoder \(input.first.map { Character(.init($0)) } ?? "?"): \(violation)"
    }
  }

  private(set) var tallies: [FuzzDecoder: Tally] = [:]

  init(
    _ numbers: Range<Int>, seed: UInt64, corpus: FuzzCorpus, harness: FuzzHarness, onInput: (Int) -> Void = { _ in }
  ) throws {
    let generator = FuzzGenerator(corpus: corpus, seed: seed)
    let clock = ContinuousClock()
    for number in numbers {
      onInput(number)
      let input = generator.input(number)
      guard let decoder = input.first.flatMap(FuzzDecoder.init) else { continue }
      let start = clock.now
      do throws(FuzzHarness.Violation) {
        let isAccepted = try harness.check(input)
        tallies[decoder, default: Tally()].inputs += 1
        if isAccepted { tallies[decoder]?.accepted += 1 }
      } catch {
        throw Finding(seed: seed, number: number, input: input, violation: error)
      }
      let slowest = tallies[decoder]?.slowest ?? .zero
      tallies[decoder]?.slowest = max(slowest, start.duration(to: clock.now))
    }
  }
}
