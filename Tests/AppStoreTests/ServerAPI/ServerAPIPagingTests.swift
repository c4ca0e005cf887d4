import Foundation
import NIOHTTP1
import Reconciliation
import Testing

@testable import AppStore

@Suite(.timeLimit(.minutes(10)))
struct ServerAPIPagingTests {
  typealias Script = ServerAPIScript

  @Test func theHistoryIsAskedForWithItsRevision() async throws {
    let path = "/sandbox/inApps/v2/history/77"
    let script: [String: [ScriptedServer.Reply]] = [
      "\(path)?revision=a%2Bb%2F%3D%26&sort=ASCENDING": [
        .json(#"{"revision":"c","hasMore":true,"signedTransactions":[]}"#)
      ],
      "\(path)?revision=c&sort=ASCENDING": [.json(#"{"revision":"d","hasMore":false,"signedTransactions":[]}"#)],
    ]
    let (answer, server) = try await Script.ask(script) {
      try await $0.transactionHistory("77", on: .sandbox, revision: "a+b/=&")
    }
    #expect(answer.end == .complete && answer.revision == "d")
    #expect(server.requests.count == 2 && answer.trail.asked == [.sandbox, .sandbox])
  }

  @Test func refundsHaveTheirOwnInterface() async throws {
    let path = "/production/inApps/v2/refund/lookup/77"
    let (answer, _) = try await Script.ask([
      path: [.json(try Script.history(["1"], revision: "a", hasMore: true))],
      "\(path)?revision=a": [.json(try Script.history(["2"], revision: "b", hasMore: false))],
    ]) { try await $0.refundHistory("77", on: .production) }
    #expect(answer.transactions.map(\.transactionId) == ["1", "2"] && answer.end == .complete)
  }

  private static let notifications = "/production/inApps/v1/notifications/history"

  private func query(_ type: String?, _ subtype: String? = nil) -> NotificationQuery {
    NotificationQuery(start: Script.now - .days(2), end: Script.now, type: type, subtype: subtype, now: Script.now)
  }

  @Test func theBodyOfAWindowNeverChanges() async throws {
    let first = Script.notifications([try Script.notification("u1")], token: "t/1", hasMore: true)
    let script: [String: [ScriptedServer.Reply]] = [
      Self.notifications: [.json(first)],
      "\(Self.notifications)?paginationToken=t%2F1": [.json(Script.notifications([], token: nil, hasMore: false))],
    ]
    let (answer, server) = try await Script.ask(script) {
      try await $0.notificationHistory(query("REFUND"), on: .production)
    }
    #expect(answer.end == .complete && answer.notifications.count == 1)
    let body = #"{"endDate":1795212000000,"notificationType":"REFUND","startDate":1795039200000}"#
    #expect(server.requests.map(\.body) == [body, body])
    #expect(server.requests.allSatisfy { $0.method == "POST" && $0.headers["Content-Type"] == ["application/json"] })
  }

  @Test func notificationsAreAskedForByTypeAndSubtype() async throws {
    let script = [Self.notifications: [ScriptedServer.Reply.json(#"{"notificationHistory":[],"hasMore":false}"#)]]
    let (_, server) = try await Script.ask(script) {
      try await $0.notificationHistory(query("DID_CHANGE_RENEWAL_PREF", "UPGRADE"), on: .production)
    }
    let body =
      #"{"endDate":1795212000000,"notificationSubtype":"UPGRADE","notificationType":"DID_CHANGE_RENEWAL_PREF","#
      + #""startDate":1795039200000}"#
    #expect(server.requests.map(\.body) == [body])
    // Apple accepts no subtype without a type.
    #expect(query(nil, "UPGRADE").subtype == nil)
  }

  @Test(arguments: ["", "1/2", "1?x", "../history/1"])
  func malformedIDsAreNotRequested(id: String) async throws {
    let (_, server) = try await Script.ask([:]) { client async throws in
      #expect(try await client.transactionHistory(id, on: .production).end == .malformedId)
      #expect(try await client.refundHistory(id, on: .production).end == .malformedId)
      #expect(try await client.subscriptionStatuses(id, on: .production).outcome == .malformedId)
      #expect(try await client.lookUpOrder(id).outcome == .malformedId)
    }
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

  @Test(
    arguments: [
      ("1", SubscriptionState.active), ("2", .expired), ("3", .billingRetry), ("4", .gracePeriod),
      ("5", .revoked), ("6", nil), ("\"4\"", .gracePeriod), ("null", nil), ("99999999999", nil),
    ] as [(String, SubscriptionState?)])
  func everySubscriptionStateIsReported(code: String, state: SubscriptionState?) async throws {
    let transaction = try TestJWS().text
    var payload = TestJWS.renewalInfo
    payload["renewalDate"] = milliseconds(2026, 8)
    let renewalInfo = try TestJWS(payload: payload).text
    let answer = try await subscriptions([item(status: code, transaction: transaction, renewalInfo: renewalInfo)])
    let statuses = try #require(answer.outcome.content)
    let status = try #require(statuses.first)
    #expect(status.subscriptionStatus == state && statuses.count == 1 && answer.silence == nil)
    #expect(status.renewalDate == Instant(milliseconds: milliseconds(2026, 8)))
    #expect(status.gracePeriodExpiresDate == Instant(milliseconds: milliseconds(2026, 7)))
  }

  @Test func renewalInfoOfOtherSubscriptionsIsIgnored() async throws {
    var payload = TestJWS.renewalInfo
    payload["originalTransactionId"] = "1"
    let answer = try await subscriptions([
      item(status: "1", transaction: try TestJWS().text, renewalInfo: try TestJWS(payload: payload).text)
    ])
    let statuses = try #require(answer.outcome.content)
    #expect(answer.trail.warnings.count == 1)
    #expect(answer.silence?.reason == .appleError, "a part of the answer is missing")
    #expect(statuses.first?.gracePeriodExpiresDate == nil)
    #expect(statuses.first?.subscriptionStatus == nil && statuses.first?.renewalDate == nil)
  }

  @Test func rejectedStatusesAreNoSubscription() async throws {
    let good = try TestJWS().text
    let spoilt = item(status: "1", transaction: Script.spoilt(good), renewalInfo: "")
    let some = try await subscriptions([spoilt, item(status: "1", transaction: good, renewalInfo: "")])
    let statuses = try #require(some.outcome.content)
    #expect(statuses.count == 1 && some.refused == 2 && some.silence?.reason == .appleError)
    #expect(statuses.first?.subscriptionStatus == nil, "the end of its grace is missing")
    let none = try await subscriptions([spoilt])
    #expect(none.silence?.reason == .appleError && none.refused == 1)
    #expect(try await subscriptions([]).outcome == .found([]))
    #expect(try await subscriptions([]).silence == nil)
  }

  // MARK: Answers without content

  @Test(
    "An answer without the field of its content is no answer",
    arguments: [
      "{}", #"{"status":0}"#, #"{"hasMore":false,"revision":"r"}"#, #"{"data":null}"#, #"{"data":"x"}"#,
      #"{"signedTransactions":null,"notificationHistory":7,"hasMore":false}"#, #"{"errorMessage":"maintenance"}"#,
    ])
  func noContentIsNoAnswer(body: String) async throws {
    let paths = [
      "/production/inApps/v2/history/77?sort=ASCENDING", "/production/inApps/v2/refund/lookup/77", Self.subscriptions,
      Self.notifications, "/production/inApps/v1/transactions/77", "/production/inApps/v1/lookup/M77",
    ]
    let script = Dictionary(uniqueKeysWithValues: paths.map { ($0, [ScriptedServer.Reply.json(body)]) })
    _ = try await Script.ask(script) { client in
      for history in [
        try await client.transactionHistory("77", on: .production),
        try await client.refundHistory("77", on: .production),
      ] {
        #expect(history.reason == .appleError && history.revision == nil && history.transactions.isEmpty)
      }
      #expect(try await client.subscriptionStatuses("77", on: .production).silence?.reason == .appleError)
      let notifications = try await client.notificationHistory(query("REFUND"), on: .production)
      #expect(notifications.reason == .appleError && notifications.paginationToken == nil)
      #expect(try await client.transactionInfo("77").reason == .appleError)
      #expect(try await client.lookUpOrder("M77").outcome.reason == .appleError, "\(body)")
    }
  }

  // MARK: Orders

  @Test func theTransactionsOfAnInvoiceAreFound() async throws {
    let path = "/production/inApps/v1/lookup/MTESTORDER1"
    let signed = [
      try TestJWS().text, try TestJWS(payload: TestJWS.transaction { $0["bundleId"] = "com.example.other" }).text,
    ]
    let body = #"{"status":0,"signedTransactions":["\#(signed[0])","\#(signed[1])"]}"#
    let (answer, server) = try await Script.ask([path: [.json(body)]]) { try await $0.lookUpOrder("MTESTORDER1") }
    let transactions = try #require(answer.outcome.content)
    #expect(transactions.map(\.transactionId) == ["2000000123456789"] && answer.refused == 1)
    #expect(server.requests.map(\.path) == [path], "production alone sends invoices")
  }

  @Test func onlyStatusOneMeansAnUnknownOrder() async throws {
    let seven = Silence(reason: .appleError, detail: "an answer with the status 7")
    for (status, outcome) in [(1, OrderAnswer.Outcome.notFound), (7, .unanswered(seven))] {
      let script = ["/production/inApps/v1/lookup/M1": [ScriptedServer.Reply.json(#"{"status":\#(status)}"#)]]
      #expect(try await Script.ask(script) { try await $0.lookUpOrder("M1") }.0.outcome == outcome)
    }
  }

  @Test func lowRateEndpointsHaveAFifthOfTheRate() {
    #expect(ServerAPIEndpoint.allCases.filter { $0.rateShare == 0.2 } == [.refundHistory, .orderLookup])
    #expect(ServerAPIHost.sandboxShare == 0.1)
  }

  @Test func aTokenIsRenewedOnDemand() async throws {
    let path = "/production/inApps/v1/lookup/M1"
    let (_, server) = try await Script.ask([path: [.json(#"{"status":1}"#)]]) { client in
      for renews in [false, false, true] {
        if renews { await client.renewToken() }
        _ = try await client.lookUpOrder("M1")
      }
    }
    let tokens = server.requests.map { $0.headers["Authorization"] }
    #expect(tokens[0] == tokens[1] && tokens[1] != tokens[2])
  }
}
