import Foundation
import Postgres
import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// A night under each fault profile accuses no order that a night without answers would not accuse. It reports the
/// problem, and the next good night equals an undisturbed one.
///
/// Five profiles run by default; all with `TEST_EFFORT` above 1, for each channel, in new and in known shops.
/// `TEST_MOOD` filters by name.
@Suite(.serialized) struct FaultProfileTests {
  private static let wanted = ProcessInfo.processInfo.environment["TEST_MOOD"]

  @Test(arguments: TortureSettings.effort > 1 ? FaultProfile.Channel.allCases : [.serverApi])
  func aFirstNightUnderEachFaultProfile(_ channel: FaultProfile.Channel) async throws {
    try await tryEach(FaultProfile.all(of: channel), channel, try await FaultProfileShop(channel))
  }

  @Test(.enabled(if: TortureSettings.effort > 1), arguments: FaultProfile.Channel.allCases)
  func aRepeatedNightUnderEachFaultProfile(_ channel: FaultProfile.Channel) async throws {
    let shop = try await FaultProfileShop(channel)
    try await tryEach(FaultProfile.all(of: channel), channel, try await shop.knowing())
  }

  private func tryEach(_ all: [FaultProfile], _ channel: FaultProfile.Channel, _ shop: FaultProfileShop) async throws {
    let moods = all.filter { mood in
      Self.wanted.map { mood.name.contains($0) } ?? (TortureSettings.effort > 1 || mood.isAlwaysTried)
    }
    print("FaultProfileTests: \(moods.count) of \(all.count) faults, \(channel)")
    let fair = try await shop.night(.fair, in: try await shop.copy(), shop.first)
    let silent = try await shop.night(.silent, in: try await shop.copy(), shop.first)
    let wanted = try await shop.night(.fair, in: try await shop.copy(), shop.second)
    #expect(silent.result.status == 3, "\(silent.result)")
    // Without answers, findings rest on local facts only.
    #expect(silent.accusations.isSubset(of: fair.accusations))
    let known = silent.accusations
    for mood in moods {
      let comment = Comment(rawValue: "\(mood.name), \(channel)")
      let database = try await shop.copy()
      let bad = try await shop.night(mood, in: database, shop.first)
      switch mood.outcome {
      case .silence:
        #expect(bad.result.status == 3, "\(comment): \(bad.result)")
        #expect(bad.ids == silent.ids && bad.dispositions == silent.dispositions, comment)
      case .parts:
        #expect([fair.result.status, 3].contains(bad.result.status), "\(comment): \(bad.result)")
      case .refused(let says):
        #expect(bad.result.status == 78, "\(comment): \(bad.result)")
        #expect(bad.reasons.contains(says), "\(comment): \(bad.result)")
      case .fair:
        #expect(bad.result.status == fair.result.status, "\(comment): \(bad.result)")
        #expect(bad.ids == fair.ids && bad.dispositions == fair.dispositions, comment)
      }
      if bad.result.status != 0 { #expect(!bad.reasons.isEmpty, comment) }
      #expect(bad.peak < 500 << 20, "\(comment): \(bad.peak) bytes")
      let imagined = bad.accusations.subtracting(known.union(fair.accusations))
      if let finding = bad.findings.first(where: { imagined.contains($0["finding_id"] ?? "") }) {
        let why = try await shop.explain(finding["order_id"] ?? "", in: database, shop.first)
        Issue.record("\(comment): \(imagined.count) false findings, such as \(finding): \(why)")
      }

      let good = try await shop.night(.fair, in: database, shop.second)
      #expect(good.result.status == wanted.result.status, "after \(comment): \(good.result)")
      let others = good.dispositions.filter { wanted.dispositions[$0.key] != $0.value }
      if let other = others.min(by: { $0.key < $1.key }) {
        let why = try await shop.explain(other.key, in: database, shop.second)
        let was = wanted.dispositions[other.key] ?? "nothing"
        Issue.record("after \(comment): \(others.count) other dispositions, such as \(other) instead of \(was): \(why)")
      }
      #expect(good.dispositions.count == wanted.dispositions.count, "after \(comment)")
      let (missed, more) = (wanted.lasting.subtracting(good.lasting), good.lasting.subtracting(wanted.lasting))
      #expect(missed.isEmpty && more.isEmpty, "after \(comment): missed \(missed), imagined \(more)")
    }
  }
}

struct FaultProfile: Sendable {
  enum Channel: String, CaseIterable, Sendable {
    case serverApi
    /// Signed receipts, sent unchanged to verifyReceipt.
    case signedReceipts
    /// Receipts that cannot be checked locally without root certificates.
    case verifyReceipt
  }

  enum Outcome: Sendable {
    /// No answer at all.
    case silence
    /// Some answers.
    case parts
    case refused(says: String)
    case fair
  }

  var name: String
  var outcome: Outcome
  var knobs = "{}"
  var way = FaultyApple.Way.forward
  var certificate = FaultyApple.Certificate.none
  var channels = Channel.allCases
  var isAlwaysTried = false

  static let fair = FaultProfile(name: "fair", outcome: .fair)
  static let silent = FaultProfile(name: "silent", outcome: .silence, knobs: #"{"outage":true}"#)

  static func all(of channel: Channel) -> [FaultProfile] {
    (exchanges + answers + ofServerAPI + ofReceipts + odd).filter { $0.channels.contains(channel) }
  }

  /// A profile whose answers are forced.
  private static func forced(
    _ name: String, _ outcome: Outcome, _ fault: String, _ channels: [Channel] = Channel.allCases,
    isAlwaysTried: Bool = false
  ) -> FaultProfile {
    FaultProfile(
      name: name, outcome: outcome, knobs: #"{"force":[{\#(fault)}]}"#, channels: channels, isAlwaysTried: isAlwaysTried
    )
  }

  private static func forced(
    _ faults: [(name: String, outcome: Outcome, fault: String)], _ channels: [Channel]
  ) -> [FaultProfile] {
    faults.map { forced($0.name, $0.outcome, $0.fault, channels) }
  }

  /// Faults of the transport.
  private static let exchanges: [FaultProfile] = [
    FaultProfile(name: "hanging sockets", outcome: .silence, way: .hang, isAlwaysTried: true),
    FaultProfile(name: "single bytes with pauses", outcome: .silence, way: .drip),
    FaultProfile(name: "resets", outcome: .silence, way: .reset),
    FaultProfile(name: "resets within answers", outcome: .silence, way: .cut),
    FaultProfile(name: "a bomb", outcome: .silence, way: .bomb),
    FaultProfile(name: "200 MB", outcome: .silence, way: .endless),
    FaultProfile(name: "a header without an end", outcome: .silence, way: .headers),
    FaultProfile(name: "no HTTP", outcome: .silence, way: .nonsense),
    FaultProfile(name: "redirects", outcome: .silence, way: .redirect),
    FaultProfile(name: "a page for people", outcome: .silence, way: .page),
    FaultProfile(name: "each answer twice", outcome: .parts, way: .echo),
    FaultProfile(
      name: "answers to another question", outcome: .parts, way: .another, channels: [.serverApi, .signedReceipts],
      isAlwaysTried: true),
    FaultProfile(name: "lists with duplicates", outcome: .fair, way: .duplicates),
    FaultProfile(name: "lists in reverse order", outcome: .fair, way: .reversed),
    FaultProfile(name: "a certificate that is trusted", outcome: .fair, certificate: .trusted),
    FaultProfile(name: "an expired certificate", outcome: .silence, certificate: .expired, isAlwaysTried: true),
    FaultProfile(name: "another host's certificate", outcome: .silence, certificate: .otherHost),
    FaultProfile(name: "a certificate of an unknown authority", outcome: .silence, certificate: .foreign),
  ]

  /// Faults in Apple's answers.
  private static let answers: [FaultProfile] = [
    FaultProfile(name: "brown-out", outcome: .parts, knobs: #"{"errorRate":0.5,"latency":"30ms","latencyJitter":1}"#),
    FaultProfile(name: "every second answer damaged", outcome: .parts, knobs: #"{"garbageRate":0.5}"#),
    forced("an outage for the first questions", .parts, #""next":40,"httpStatus":503"#),
    forced("no sandbox", .parts, #""path":"/sandbox","httpStatus":503"#),
    forced("a page of HTML for every answer", .silence, #""body":"html""#),
    forced("other JSON for every answer", .silence, #""body":"wrongType""#),
    forced("17 MiB for every answer", .silence, #""body":"huge""#),
    forced("an empty body in every answer", .silence, #""body":"empty""#),
    forced(
      "a key refused for some requests", .parts, #""share":0.3,"httpStatus":401"#, [.serverApi], isAlwaysTried: true),
    FaultProfile(
      name: "everything 4040010", outcome: .refused(says: "not_found"),
      knobs: #"""
        {"force":[{"path":"/production/inApps/v1/transactions","errorCode":4040010},
          {"path":"/sandbox/inApps/v1/transactions","errorCode":4040010}]}
        """#,
      channels: [.serverApi], isAlwaysTried: true),
    forced("another app's receipt for every question", .parts, anotherAppsReceipt, [.signedReceipts]),
    forced(
      "another app's receipt for every question", .refused(says: "bundleId"), anotherAppsReceipt, [.verifyReceipt]),
  ]

  private static let ofServerAPI: [FaultProfile] =
    forced(
      [
        ("no answers about transactions", .parts, #""path":"/production/inApps/v1/transactions","httpStatus":503"#),
        ("no answers about histories", .parts, #""path":"/production/inApps/v2","httpStatus":500"#),
        ("no answers about subscriptions", .parts, #""path":"/production/inApps/v1/subscriptions","httpStatus":500"#),
        ("no answers about notifications", .parts, #""path":"/production/inApps/v1/notifications","httpStatus":503"#),
        ("a refused key", .refused(says: "key"), #""httpStatus":401"#),
        ("everything 4040003", .refused(says: "bundle"), #""errorCode":4040003"#),
        ("everything 4000000", .refused(says: "4000000"), #""errorCode":4000000"#),
        ("everything 5000001", .silence, #""errorCode":5000001"#),
        ("a stranger's signature", .refused(says: "night-audit trust"), #""stranger":true"#),
        ("spoilt signatures", .refused(says: "night-audit trust"), #""badSignature":true"#),
        (
          "another app's transactions", .refused(says: "bundleId"), #""payload":{"bundleId":"com.example.stranger"}"#
        ),
        ("another environment's transactions", .refused(says: "bundleId"), #""payload":{"environment":"Sandbox"}"#),
        (
          "one transaction for every question", .parts,
          #""path":"/production/inApps/v1/transactions","payload":{"transactionId":"2000000000001"}"#
        ),
        ("pages without an end", .parts, #""fields":{"hasMore":true}"#),
      ], [.serverApi])

  private static let anotherAppsReceipt =
    #""fields":{"receipt":{"bundle_id":"com.example.stranger","in_app":[]},"latest_receipt_info":[]}"#

  private static let ofReceipts: [FaultProfile] =
    forced(
      [
        ("a refused shared secret", .refused(says: "shared secret"), #""status":21004"#),
        ("everything 21002", .silence, #""status":21002"#), ("much 21002", .parts, #""share":0.5,"status":21002"#),
        ("everything 21005", .silence, #""status":21005"#), ("everything 21009", .silence, #""status":21009"#),
        ("everything 211xx", .silence, #""status":21142"#),
        ("everything 21003", .refused(says: "21003"), #""status":21003"#),
        (
          "everything 21007 and 21008", .silence,
          #""path":"/production","status":21007},{"path":"/sandbox","status":21008"#
        ),
        ("status 0 without a receipt", .silence, #""status":0"#),
        ("one environment for every receipt", .parts, #""fields":{"environment":"Sandbox"}"#),
      ], [.signedReceipts, .verifyReceipt])

  /// 429 with odd values of `Retry-After`.
  private static let odd: [FaultProfile] = [
    "", "0", "-1", "1.5", "soon", "1e9", "99999999999999999999999999", "Wed, 21 Oct 2015 07:28:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT", "9223372036854775807", "1795132800000", "3, 4", "٣",
  ].map { value in
    forced(
      "429 with Retry-After \(value)", .parts, #""share":0.7,"httpStatus":429,"headers":{"Retry-After":"\#(value)"}"#)
  }
}
