import Foundation
import Reconciliation
import Testing

@testable import Run

@Suite struct AuditPlanTests {
  private static let asOf = Instant(seconds: 1_795_143_600)

  private func plan(isPastAudit: Bool) throws -> AuditPlan {
    var plan = AuditPlan(
      rules: Rules(asOf: Self.asOf, bundleIds: ["com.example.game"], lookbackStart: Self.asOf - .days(120)),
      period: try Period(since: "2026-11-19", until: "2026-11-19", in: .gmt), selection: Selection(),
      staleAfter: .days(7), refundWindow: .days(120))
    plan.isPastAudit = isPastAudit
    return plan
  }

  @Test func lookupsAreOwedIfTheAppCanAskAboutIDs() throws {
    let order = Order(
      orderId: "order", userId: "user", productId: "gems",
      amount: Money(minorUnits: 990, currency: try #require(Currency(code: "USD"))), status: .verified,
      createdAt: Self.asOf - .days(1))
    var plan = try plan(isPastAudit: false)
    #expect(plan.isOutstanding(.neverChecked, of: order))
    plan.rules.appsWithLookup = []
    #expect(!plan.isOutstanding(.neverChecked, of: order))
  }

  @Test func receiptsOfUnconfiguredAppsAreNotOwed() throws {
    let plan = try plan(isPastAudit: false)
    var state = ProofState.neverChecked
    #expect(plan.isOutstanding(state, from: Self.asOf - .days(1)) && state.isUnknown)
    state.reason = .wrongBundle
    #expect(!plan.isOutstanding(state, from: Self.asOf - .days(1)) && !state.isUnknown)
  }

  /// An unanswered check is outstanding even if its due date is in the future; other checks with such a date are not.
  @Test func unansweredChecksWithAFutureDateAreOutstanding() throws {
    var asked = ProofState()
    asked.outcome = .unanswered
    asked.reason = .unreachable
    asked.unansweredSince = Self.asOf
    asked.due = Dueness(from: Self.asOf + .minutes(5), rank: .open)
    for (isPastAudit, isOwed) in [(false, true), (true, false)] {
      let plan = try plan(isPastAudit: isPastAudit)
      for ahead: Reconciliation.Span in [.minutes(1), .hours(2)] {
        #expect(plan.isOutstanding(asked, from: Self.asOf + ahead) == isOwed)
        #expect(!plan.isOutstanding(.neverChecked, from: Self.asOf + ahead))
      }
      #expect(plan.isOutstanding(asked, from: Self.asOf) && plan.isOutstanding(.neverChecked, from: Self.asOf))
      #expect(!plan.isOutstanding(asked, from: Self.asOf - .days(121)))
    }
  }
}
