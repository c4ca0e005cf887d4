import Foundation
import Run
import TestSupport
import Testing

@testable import NightAudit

/// Configurations that somebody has broken: taken, or refused by an error that names the key and shows no value.
@Suite(.timeLimit(.minutes(30)))
struct HostileConfigurationTests {
  private static let secret = "s3cr3t-marker"
  private static let genuine = [
    """
    database:
      url: "postgresql://reader:\(secret)@db/shop"
      salesSchema: sales
    appstore:
      apps: [game, other]
      requestsPerSecond: 25
      timeout: 30s
    app:
      game:
        bundleId: com.example.game
        appAppleId: 1234567890
      other:
        bundleId: com.example.other
    audit:
      lookback: 120d
      testUsers: [a, "b", 'c']
      holdShare: 0.2
      reviewWindows:
        - since: 2026-11-01
          until: 2026-11-02
    findings.owners: {critical: ann}
    report:
      timeZone: Europe/Berlin
      formats: csv,xlsx
    """,
    """
    app.game.bundleId: com.example.game
    recheck.staleAfter: 7d
    notify: {pingUrl: "https://example.com/\(secret)", on: change}
    evidence.retention: 400d
    """,
  ].map { Array($0.utf8) }

  @Test func anyConfigurationIsTakenOrRefused() throws {
    let inputs = MutatedInputs(
      Self.genuine,
      tokens: [
        ": ", "- ", "&a", "*a", "!!binary ", "{", "}", "[", "]", "|", ">", "'", "\"", "#", "\n", "\n  ", "\t", "---",
        "...",
        "~", "? ", "<<: *a", "1h", "-1d", "99999999999999d", "NaN", "%", "@", "`", "app", "audit.lookback",
      ])
    let count = 600
    var (taken, refused) = (0, 0)
    for number in MutatedInputs.numbers(count) {
      let text = String(decoding: inputs.input(number), as: UTF8.self)
      do {
        _ = try SettingsLoader.load(
          file: try ConfigurationFile(yaml: text, name: "test.yaml"), name: "test.yaml", environment: [:])
        taken += 1
      } catch let error as ConfigurationError {
        refused += 1
        #expect(!"\(error)".contains(Self.secret), "input \(number): \(error)")
      } catch {
        Issue.record(error, "input \(number) of seed \(MutatedInputs.seed)")
      }
    }
    #expect(taken > count / 50 && refused > count / 50, "\(taken) taken, \(refused) refused")
  }
}
