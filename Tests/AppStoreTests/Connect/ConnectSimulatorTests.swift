import Crypto
import Foundation
import Gzip
import Reconciliation
import TieOut
import Testing

@testable import AppStore

/// The client and the report reader against the simulator, with its report faults.
struct ConnectSimulatorTests {
  private static let key = P256.Signing.PrivateKey()
  private static let day = "2026-11-10"

  /// Two purchases of 10 November in California, one of them counted a day later, a refund, and a lost order.
  private static let world: String = {
    let pem = key.publicKey.pemRepresentation.replacing("\n", with: "\\n")
    let bought: Int64 = 1_794_343_600_000
    let transactions = [
      SimulatedWorld.sold(
        "1", at: bought,
        #""quantity":2,"price":1980,"currency":"USD","storefront":"USA","revocationDate":\#(bought + 1_000_000)"#),
      SimulatedWorld.sold(
        "2", at: bought,
        #""reportedDate":\#(bought + SimulatedWorld.day),"price":990,"currency":"USD","storefront":"DEU""#),
      SimulatedWorld.sold("3", at: bought, #""price":990,"currency":"USD","storefront":"USA","isReportOnly":true"#),
      SimulatedWorld.sold("4", at: bought, #""price":990,"currency":"USD""#, environment: "Sandbox"),
    ]
    return """
      {"apps":[{"bundleId":"com.example.game","sku":"GAME01"}],"receipts":[],
      "connect":{"vendor":"80012345","issuerId":"issuer","keyId":"KEY","publicKey":"\(pem)","uncollectedPermille":0},
      "transactions":[\(transactions.joined(separator: ","))]}
      """
  }()

  private func download(
    _ simulator: RunningSimulator, key: P256.Signing.PrivateKey = Self.key, kind: ConnectQuery.Kind? = nil,
    name: String = Self.day
  ) async throws -> ConnectAnswer {
    let transport = HTTPTransport(inflates: false, maximumBodyBytes: 128 << 20)
    let client = try ConnectClient(
      transport: transport, url: EndpointURL("http://127.0.0.1:\(simulator.port)"),
      credentials: ConnectCredentials(issuerId: "issuer", keyId: "KEY", privateKeyPEM: Secret(key.pemRepresentation)),
      version: "test", now: { Instant(seconds: Int64(Date().timeIntervalSince1970)) }
    ) { _ throws(CancellationError) in }
    let answer = try await client.download(
      ConnectQuery(vendor: "80012345", kind: kind ?? .sales(frequency: "DAILY", version: "1_0"), reportDate: name))
    await transport.shutdown()
    return answer
  }

  private func rows(_ answer: ConnectAnswer) throws -> [SalesRow] {
    guard case .file(let file) = answer.outcome else { throw RunningSimulator.Failure(description: "\(answer)") }
    let day = try #require(ReportDay(Self.day))
    var rows: [SalesRow] = []
    _ = try SalesReport.read(file.bytes, days: day...day) { rows.append($0) }
    return rows
  }

  private func force(_ simulator: RunningSimulator, _ fault: String) async throws {
    try await simulator.control("faults", "{\"force\":[{\"path\":\"/v1/\",\"connect\":\(fault)}]}")
  }

  @Test func aDailyReportContainsApplesSalesOfTheDay() async throws {
    try await RunningSimulator.run(world: Self.world) { simulator in
      let answer = try await download(simulator)
      let file = try #require(answer.outcome.report)
      #expect(file.name == "S_D_80012345_20261110_V1_0.txt.gz" && file.version == "1_0")
      let rows = try rows(answer)
      // 2 bought and 1 lost; 2 refunded; without the sandbox and the next day.
      #expect(rows.filter { $0.units > .zero }.map(\.units).reduce(.zero, +) == Millionths(3))
      #expect(rows.filter { $0.units < .zero }.map(\.units).reduce(.zero, +) == Millionths(-2))
      #expect(rows.allSatisfy { $0.country == "US" && $0.parent == "GAME01" && $0.type == "IA1" })
      #expect(try await download(simulator, name: "2026-11-09").outcome == .noSales)
    }
  }

  @Test func anUnknownKeyIsRejected() async throws {
    try await RunningSimulator.run(world: Self.world) { simulator async throws in
      #expect(try await download(simulator, key: P256.Signing.PrivateKey()).outcome == .refused(.token))
    }
  }

  @Test func everyFaultOfAReportIsServed() async throws {
    try await RunningSimulator.run(world: Self.world) { simulator in
      let plain = try rows(await download(simulator))
      for spelling in [
        #""encoding":"gzip""#, #""encoding":"none""#, #""compressions":0"#, #""compressions":2"#,
        #""compressions":2,"encoding":"gzip""#, #""extraColumn":"New""#, #""isReversed":true"#, #""hasBlanks":true"#,
        #""hasTrailingTab":true"#, #""hasCRLF":true"#,
      ] {
        try await force(simulator, "{\(spelling)}")
        #expect(try rows(await download(simulator)) == plain, "\(spelling)")
      }
      try await force(simulator, #"{"isHeaderOnly":true}"#)
      #expect(try rows(await download(simulator)).isEmpty)
      try await force(simulator, #"{"type":"IZ9"}"#)
      #expect(
        try rows(await download(simulator)).allSatisfy {
          SalesRowKind(code: $0.type, hasParent: !$0.parent.isEmpty) == .unknown
        })
      try await force(simulator, #"{"hasZeroUnits":true}"#)
      #expect(try rows(await download(simulator)).contains { $0.units == .zero })
      try await force(simulator, #"{"missingColumn":"Units"}"#)
      let answer = try await download(simulator)
      #expect(throws: ReportProblem(line: 1, "the column “Units” is missing")) { try rows(answer) }
      try await force(simulator, #"{"isCut":true}"#)
      let cut = Silence(reason: .appleError, detail: "the compressed data end before their end")
      #expect(try await download(simulator).outcome == .unanswered(cut))
      try await force(simulator, #"{"isBomb":true}"#)
      let file = try #require(try await download(simulator).outcome.report)
      #expect(throws: GunzipError.tooLong(limit: 1 << 20)) { try Gunzip.text(of: file.bytes, limit: 1 << 20) }
      try await force(simulator, #"{"version":"1_4"}"#)
      let drifted = try await download(simulator)
      #expect(try drifted.requests == 2 && drifted.warnings.count == 1 && !rows(drifted).isEmpty)
      let code = "FORBIDDEN.REQUIRED_AGREEMENTS_MISSING_OR_EXPIRED"
      try await force(simulator, #"{"failure":{"status":403,"code":"\#(code)","detail":"x"}}"#)
      #expect(try await download(simulator).outcome == .refused(.agreements))
    }
  }

  /// Both kinds of finance report of one period have the same sums, and a late settlement is in the next one.
  @Test func financeReportsAgreeWithEachOther() async throws {
    try await RunningSimulator.run(world: Self.world) { simulator in
      func finance(_ type: String, _ region: String) async throws -> ConnectAnswer.Outcome {
        try await download(simulator, kind: .finance(type: type, region: region), name: "2027-02").outcome
      }
      func sum(_ type: String, _ region: String) async throws -> Millionths {
        let file = try #require(try await finance(type, region).report)
        var sum = Millionths.zero
        _ = try FinanceReport.read(file.bytes, period: FiscalCalendar.period(named: "2027-02")) {
          sum += $0.extendedShare
        }
        return sum
      }
      let detailed = try await sum("FINANCE_DETAIL", "Z1")
      #expect(try await sum("FINANCIAL", "ZZ") == detailed && detailed > .zero)
      try await force(simulator, #"{"hasBadTotals":true}"#)
      let file = try #require(try await finance("FINANCIAL", "ZZ").report)
      #expect(throws: ReportProblem.self) { try FinanceReport.read(file.bytes, period: nil) { _ in } }
      // A calendar month is not a fiscal period, and a wrong region has no sales.
      #expect(try await finance("FINANCIAL", "US") == .noSales)
    }
  }
}
