#if !LIBFUZZER
  import ArgumentParser
  import Foundation

  @main
  struct FuzzProgram: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "fuzz",
      abstract: "Random bytes and mutated genuine structures into every decoder of Apple's data.",
      discussion: """
        An input follows from the seed and its number. After a crash, find its number by --first and --verbose:
          fuzz --seed 3 --first 120000 --inputs 50000 --verbose
        """)

    @Option(help: "The number of inputs.")
    var inputs = 1_000_000

    @Option(help: "The seed of the inputs.")
    var seed: UInt64 = 1

    @Option(help: "The number of the first input.")
    var first = 0

    @Flag(help: "Print the number of each input before it is read.")
    var verbose = false

    func run() throws {
      let corpus = try FuzzCorpus()
      let harness = try FuzzHarness(corpus)
      let start = ContinuousClock.now
      let run = try FuzzRun(first..<(first + inputs), seed: seed, corpus: corpus, harness: harness) { number in
        if verbose || number.isMultiple(of: 100_000) {
          FileHandle.standardError.write(Data("input \(number)\n".utf8))
        }
      }
      report(run, elapsed: start.duration(to: .now))
    }

    private func report(_ run: FuzzRun, elapsed: Duration) {
      print("decoder                inputs  accepted  slowest ms")
      for decoder in FuzzDecoder.allCases {
        guard let tally = run.tallies[decoder] else { continue }
        let name = "\(decoder)".padding(toLength: 20, withPad: " ", startingAt: 0)
        print(
          "\(name)\(column(tally.inputs, 9))\(column(tally.accepted, 10))\(column(tally.slowest / .milliseconds(1), 12))"
        )
      }
      let rate = Double(inputs) / (elapsed / .seconds(1))
      print("\(inputs) inputs, seed \(seed): no crash, nothing forged accepted; \(Int(rate)) inputs/s, peak \(peak) MB")
    }

    private func column(_ number: Int, _ width: Int) -> String { column("\(number)", width) }

    private func column(_ number: Double, _ width: Int) -> String { column("\((number * 10).rounded() / 10)", width) }

    private func column(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(1, width - text.count)) + text
    }

    private var peak: Int {
      var usage = rusage()
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return usage.ru_maxrss / 1_024
    }
  }
#endif
