import AppStore
import Foundation
import NIOHTTP1
import Reconciliation
import Testing

/// What is sent for each page.
@Suite(.timeLimit(.minutes(1)))
struct ServerAPIPagingTests {
  typealias Script = ServerAPIScript

  @Test func theHistoryIsAskedForWithItsRevision() async throws {
    let path = "/sandbox/inApps/v2/history/77"
    let script: [String: [ScriptedServer.Reply]] = [
      "\(path)?revision=a%2Bb%2F%3D%26&sort=ASCENDING": [.json(#"{"revision":"c","hasMore":true}"#)],
      "\(path)?revision=c&sort=ASCENDING": [.json(#"{"revision":"d","hasMore":false}"#)],
    ]
    let (answer, server) = try await Script.ask(script) {
      try await $0.transactionHistory("77", on: .sandbox, revision: "a+b/=&")
    }
    #expect(answer.end == .complete && answer.revision == "d")
    #expect(server.requests.count == 2 && answer.trail.asked == [.sandbox, .sandbox])
  }

  @Test func aForgottenRevisionIsLeftOut() async throws {
    let path = "/production/inApps/v2/history/77"
    let script: [String: [ScriptedServer.Reply]] = [
      "\(path)?revision=old&sort=ASCENDING": [Script.error(4_000_005)],
      "\(path)?sort=ASCENDING": [.json(try Script.history(["1"], revision: "new", hasMore: false))],
    ]
    let (answer, _) = try await Script.ask(script) {
      try await $0.transactionHistory("77", on: .production, revision: "old")
    }
    #expect(answer.end == .complete && answer.revision == "new" && answer.transactions.count == 1)
  }

  @Test func refundsHaveTheirOwnInterface() async throws {
    let path = "/production/inApps/v2/refund/lookup/77"
    let (answer, _) = try await Script.ask([
      path: [.json(try Script.history(["1"], revision: "a", hasMore: true))],
      "\(path)?revision=a": [.json(try Script.history(["2"], revision: "b", hasMore: false))],
    ]) { try await $0.refundHistory("77", on: .production) }
    #expect(answer.transactions.map(\.fact.transactionId) == ["1", "2"] && answer.end == .complete)
  }

  @Test func theBodyOfAWindowNeverChanges() async throws {
    let path = "/production/inApps/v1/notifications/history"
    let first = Script.notifications([try Script.notification("u1")], token: "t/1", hasMore: true)
    let script: [String: [ScriptedServer.Reply]] = [
      path: [.json(first)],
      "\(path)?paginationToken=t%2F1": [.json(Script.notifications([], token: nil, hasMore: false))],
    ]
    let query = NotificationQuery(
      start: Script.now - .days(2), end: Script.now, type: "REFUND", now: Script.now)
    let (answer, server) = try await Script.ask(script) { try await $0.notificationHistory(query, on: .production) }
    #expect(answer.end == .complete && answer.notifications.count == 1)
    let body = #"{"endDate":1795212000000,"notificationType":"REFUND","startDate":1795039200000}"#
    #expect(server.requests.map(\.body) == [body, body])
    #expect(server.requests.allSatisfy { $0.method == "POST" && $0.headers["Content-Type"] == ["application/json"] })
  }

  @Test(arguments: ["", "1/2", "1?x"])
  func whatCannotBeAnIdIsNotAsked(id: String) async throws {
    let (answers, server) = try await Script.ask([:]) { client in
      let history = try await client.transactionHistory(id, on: .production)
      let refunds = try await client.refundHistory(id, on: .production)
      return (history, refunds, try await client.subscriptionStatuses(id, on: .production))
    }
    #expect(answers.0.end == .malformedId && answers.1.end == .malformedId && answers.2.outcome == .malformedId)
    #expect(server.requests.isEmpty)
  }

  // MARK: Subscriptions

  private static let subscriptions = "/production/inApps/v1/subscriptions/77"

  private func subscriptions(_ items: [String]) async throws -> SubscriptionAnswer {
    let json = #"{"data":[{"subscriptionGroupIdentifier":"g","lastTransactions":[\#(items.joined(separator: ","))]}]}"#
    return try await Script.ask([Self.subscriptions: [.json(json)]]) {
      try await $0.subscriptionStatuses("77", on: .production)
    }.0
  }

  private func item(status: String, transaction: String, renewalInfo: String) -> String {
    #"{"status":\#(status),"signedTransactionInfo":"\#(transaction)","signedRenewalInfo":"\#(renewalInfo)"}"#
  }

  @Test(arguments: [
    ("1", SubscriptionStatus.State.active), ("2", .expired), ("3", .billingRetry), ("4", .gracePeriod),
    ("5", .revoked), ("6", .other(6)), ("\"4\"", .gracePeriod), ("null", .other(nil)),
  ])
  func everyStateIsTold(code: String, state: SubscriptionStatus.State) async throws {
    let transaction = try TestJWS().text
    let renewalInfo = try TestJWS(payload: TestJWS.renewalInfo).text
    let answer = try await subscriptions([item(status: code, transaction: transaction, renewalInfo: renewalInfo)])
    guard case .found(let statuses) = answer.outcome, let status = statuses.first else {
      Issue.record("\(answer)")
      return
    }
    #expect(status.state == state && status.groupIdentifier == "g" && statuses.count == 1)
    #expect(status.transaction.fact.gracePeriodExpiresDate == Instant(milliseconds: milliseconds(2026, 7)))
    #expect(status.renewalInfo?.expirationIntent == 2)
  }

  @Test func renewalInformationOfAnotherSubscriptionIsLeftOut() async throws {
    var payload = TestJWS.renewalInfo
    payload["originalTransactionId"] = "1"
    let answer = try await subscriptions([
      item(status: "1", transaction: try TestJWS().text, renewalInfo: try TestJWS(payload: payload).text)
    ])
    guard case .found(let statuses) = answer.outcome else {
      Issue.record("\(answer)")
      return
    }
    #expect(statuses.first?.renewalInfo == nil && answer.trail.warnings.count == 1)
    #expect(statuses.first?.transaction.fact.gracePeriodExpiresDate == nil)
  }

  @Test func whatIsNotBelievedIsNoSubscription() async throws {
    let good = try TestJWS().text
    let spoilt = item(status: "1", transaction: Script.spoilt(good), renewalInfo: "")
    let some = try await subscriptions([spoilt, item(status: "1", transaction: good, renewalInfo: "")])
    guard case .found(let statuses) = some.outcome else {
      Issue.record("\(some)")
      return
    }
    #expect(statuses.count == 1 && some.refused == 1)
    let none = try await subscriptions([spoilt])
    #expect(none.health == .failure && none.refused == 1)
    #expect(try await subscriptions([]).outcome == .found([]))
  }
}
