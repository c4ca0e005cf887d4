import Reconciliation
import Testing

@testable import Run

/// Thresholds of `--fail-above`.
@Suite struct FindingsThresholdTests {
  @Test(arguments: ["0", "25", "500USD", "500 USD", "USD 500.00", "usd500", "300JPY", "1.234KWD"])
  func countsAndAmountsAreRead(_ text: String) {
    var threshold = FindingsThreshold()
    let isRead = threshold.add(text)
    #expect(isRead)
  }

  @Test(arguments: [
    "", "-1", "-0", "+1", "many", "5.5", "500 XYZ", "1.001USD", "300.5JPY", "5US D", "1e3USD", "USD", "-5USD",
    "-0.5USD", "+5USD", "1.+5USD", "1000000000000USD",
  ])
  func otherThresholdsAreRejected(_ text: String) {
    var threshold = FindingsThreshold()
    let isRead = threshold.add(text)
    #expect(!isRead)
  }

  @Test func aThresholdIsExceededOnlyByMore() throws {
    let usd = try #require(Currency(code: "USD"))
    let jpy = try #require(Currency(code: "JPY"))
    var threshold = FindingsThreshold()
    for text in ["3", "500USD", "5"] {
      let isRead = threshold.add(text)
      #expect(isRead)
    }
    #expect(!threshold.isExceeded(critical: 3, atStake: [usd: 50_000, jpy: 1_000_000]))
    #expect(threshold.isExceeded(critical: 4, atStake: [:]))
    #expect(threshold.isExceeded(critical: 0, atStake: [usd: 50_001]))
    #expect(FindingsThreshold.any.isExceeded(critical: 1, atStake: [:]))
    #expect(!FindingsThreshold.any.isExceeded(critical: 0, atStake: [usd: 1]))
  }
}

@Suite struct LogFormatTests {
  private static let fields = [
    ("time", "2026-11-20T03:00:00Z"), ("message", "a \"b\" = c\\d\n\u{1B}[2Jé\u{202E}"), ("empty", ""),
  ]

  @Test func everyLineIsOneLineWithoutControls() {
    #expect(
      LineLogHandler.line(Self.fields, .logfmt)
        == #"time=2026-11-20T03:00:00Z message="a \"b\" = c\\d\n\u001b[2J\u00e9\u202e" empty="""#)
    #expect(
      LineLogHandler.line([("time", "T"), ("level", "info")] + Self.fields.dropFirst(), .text)
        == #"T info a "b" = c\d\n\u001B[2Jé\u202E empty="#)
    #expect(
      LineLogHandler.line(Self.fields, .json)
        == #"{"time":"2026-11-20T03:00:00Z","message":"a \"b\" = c\\d\n\u001b[2J\u00e9\u202e","empty":""}"#)
  }
}
