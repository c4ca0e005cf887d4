import AppStore
import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import TestSupport
import Testing

@testable import Auditing
@testable import NightAudit
@testable import Run

/// `explain` reads one order and the audit reads them all: both say the same about each.
@Suite struct ExplainTests {
  @Test(arguments: [0, 1] as [UInt64])
  func eachOrderIsExplainedAsTheAuditJudgesIt(seed: UInt64) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("explain-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    var shop = CrowdedShop(seed: seed)
    let settings = try await shop.load(reports: directory.path)

    var request = NightRequest(asOf: CrowdedShop.asOf)
    request.period = try Period(since: "2026-01-01", until: "2026-12-31", in: settings.timeZone)
    request.out = directory.path + "/out"
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let night = NightRun(
      settings: settings, logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true))
    let outcome = try await night.reconcile(request)
    #expect(outcome.totals.ordersRead == shop.orderIds.count)

    let orders = try table(directory.path + "/out/orders.csv")
    let findings = try table(directory.path + "/out/findings.csv")
    let findingsById = Dictionary(findings.map { ($0["finding_id"] ?? "", $0) }) { first, _ in first }
    for row in orders {
      let id = row["order_id"] ?? ""
      let dossier = try await Explain(settings: settings).dossier(Identifier(id), asOf: CrowdedShop.asOf)
      let judgement = dossier.judgement
      #expect(row["disposition"] == judgement.disposition.rawValue, "\(id)")
      #expect(row["payment"] == judgement.verdict?.name ?? "", "\(id)")
      #expect(row["payment_reason"] == judgement.verdict?.reason?.rawValue ?? "", "\(id)")
      #expect(row["transaction_id"] == judgement.transactionId?.text ?? "", "\(id)")
      #expect(row["checked_at"] == machineText(judgement.checkedAt), "\(id)")
      #expect(row["delivered_at"] == machineText(judgement.deliveredAt), "\(id)")
      let own = findings.filter { $0["order_id"] == id }.map(said).sorted()
      #expect(own == dossier.findings.filter { $0.orderId?.text == id }.map(said).sorted(), "\(id)")
      for finding in dossier.findings {
        #expect(findingsById[finding.findingId].map(said) == said(finding), "\(id)")
      }
      #expect(!DossierText.text(dossier, settings: settings).contains("payload"))
      #expect(try !DossierDocument(dossier).json.contains("payload"))
    }
    // The shop is crowded enough for every way of settling claims to matter.
    let kinds = Set(findings.compactMap { $0["kind"] })
    #expect(kinds.isSuperset(of: ["duplicate_claim", "orphan_payment"]), "\(kinds)")
  }

  @Test func whatIsNotThereIsNamedWithItsNeighbours() async throws {
    var shop = CrowdedShop(seed: 9)
    let settings = try await shop.load(reports: "/nonexistent")
    let explain = Explain(settings: settings)
    let asOf = CrowdedShop.asOf
    await #expect(throws: Explain.Missing.self) { try await explain.dossier("nothing like it", asOf: asOf) }
    do {
      _ = try await explain.dossier("ORDER-17", asOf: asOf)
    } catch let missing as Explain.Missing {
      #expect(missing.nearMisses.first == "There is an order order-17.")
      #expect(ExitStatus(for: missing) == .nothingThere)
    }
    do {
      _ = try await explain.dossier("r1", asOf: asOf)
    } catch let missing as Explain.Missing {
      #expect(missing.description.contains("r1 is the id of a receipt"))
    }
  }

  private func said(_ row: [String: String]) -> String {
    [
      row["finding_id"], row["kind"], row["reason"], row["transaction_id"], row["receipt_id"], row["user_id"],
      row["at_stake"],
    ].map { $0 ?? "" }.joined(separator: "|")
  }

  private func said(_ finding: Finding) -> String {
    [
      finding.findingId, finding.kind.rawValue, finding.reason, finding.transactionId?.text ?? "",
      finding.receiptId?.text ?? "", finding.userId?.text ?? "", finding.atStake?.decimalText ?? "",
    ].joined(separator: "|")
  }

  private func machineText(_ instant: Instant?) -> String {
    instant.map { Date(timeIntervalSince1970: Double($0.seconds)).ISO8601Format() } ?? ""
  }

  /// A CSV file by its header.
  private func table(_ path: String) throws -> [[String: String]] {
    var rows: [[String]] = [[]]
    var cell = ""
    var isQuoted = false
    for character in try String(contentsOfFile: path, encoding: .utf8) {
      switch character {
      case "\"": isQuoted.toggle()
      case "," where !isQuoted:
        rows[rows.count - 1].append(cell)
        cell = ""
      case "\r\n" where !isQuoted:
        rows[rows.count - 1].append(cell)
        cell = ""
        rows.append([])
      default: cell.append(character)
      }
    }
    let header = rows[0]
    return rows.dropFirst().filter { $0.count == header.count }.map {
      Dictionary(uniqueKeysWithValues: zip(header, $0))
    }
  }
}
