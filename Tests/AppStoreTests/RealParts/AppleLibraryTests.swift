import Crypto
import Foundation
import Reconciliation
import SwiftASN1
import Testing
import X509

@testable import AppStore

/// Apple's own server library sends the simulator the same requests as our client, and both must read the same.
@Suite(.enabled(if: RealParts.areInstalled), .timeLimit(.minutes(10)))
struct AppleLibraryTests {
  private static let day = SimulatedWorld.day

  /// Adds forty-five purchases of one customer, so that histories have pages. They are recent, because Apple keeps
  /// notifications for half a year by the clock of the client.
  private static func world(now: Int64, key: P256.Signing.PrivateKey) -> String {
    let gems = (0..<45).map { number in
      let refund =
        #","revocationDate":\#(now - 3_600_000 + Int64(number)),"revocationReason":1,"revocationType":"REFUND_PRORATED","#
        + #""revocationPercentage":33333"#
      return SimulatedWorld.sold(
        "\(2_000 + number)", at: now - 2 * day + Int64(number) * 60_000,
        #""quantity":3,"price":5970,"currency":"JPY","appAccountToken":"\#(SimulatedWorld.token)""#
          + (number.isMultiple(of: 9) ? refund : ""))
    }
    let pem = key.publicKey.pemRepresentation.replacing("\n", with: "\\n")
    return SimulatedWorld.ofEveryKind(
      app: #","publicKey":"\#(pem)","issuerId":"\#(ServerAPICredentials.issuer)","keyId":"2X9R4HXF34""#, now: now,
      and: gems)
  }

  @Test func bothClientsReportEqualFacts() async throws {
    let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
    let key = P256.Signing.PrivateKey()
    let world = Self.world(now: max(now, 1_795_104_000_000), key: key)
    try await SigningSimulator.run(world) { setting in
      let base = "http://127.0.0.1:\(setting.simulator.port)/production"
      let ids = ["1", "2", "3", "4", "5", "6", "7", "2000", "2009", "999"]
      let orders = ["MINVOICE1", "MINVOICE2"]
      let notifications =
        [
          ("ONE_TIME_CHARGE", nil), ("REFUND", nil), ("DID_CHANGE_RENEWAL_PREF", "UPGRADE"), ("OFFER_REDEEMED", nil),
          ("CONSUMPTION_REQUEST", nil), ("SUBSCRIBED", "INITIAL_BUY"), ("REVOKE", nil),
        ] as [(String, String?)]
      let window = (since: now - 100 * Self.day, until: now + Self.day)
      let asked: [String: Any] = [
        "base": base, "root": try setting.roots.certificates.map { try $0.serializeAsPEM().pemString }.joined(),
        "key": key.pemRepresentation, "keyId": "2X9R4HXF34", "issuerId": ServerAPICredentials.issuer,
        "bundleId": "com.example.game", "appAppleId": 1_234_567_890, "ids": ids, "orders": orders,
        "notifications": notifications.map { [$0.0, $0.1 as Any?] }, "since": window.since, "until": window.until,
      ]
      let theirs = try RealParts.run("apple_library.py", asked)

      var credentials = ServerAPICredentials.test(key: key)
      credentials.appAppleId = 1_234_567_890
      let client = try setting.simulator.client(credentials, roots: setting.roots)
      let ours = OwnClientFacts(client: client)
      for (part, value) in try await ours.everything(ids, orders, notifications, window) {
        let others = theirs[part] as? [String: Any] ?? [:]
        for subject in Set(value.keys).union(others.keys) {
          let (mine, other) = (try RealParts.text(value[subject]), try RealParts.text(others[subject]))
          #expect(mine == other, "\(part) of \(subject): \(mine) against \(other)")
        }
      }
    }
  }
}

private struct OwnClientFacts {
  let client: ServerAPIClient

  func everything(
    _ ids: [String], _ orders: [String], _ notifications: [(String, String?)], _ window: (since: Int64, until: Int64)
  ) async throws -> [String: [String: Any]] {
    var learnt: [String: [String: Any]] = [
      "info": [:], "history": [:], "refunds": [:], "statuses": [:], "notifications": [:], "orders": [:],
    ]
    for id in ids {
      learnt["info"]?[id] = try await info(id)
      learnt["history"]?[id] = try await history(id)
      learnt["refunds"]?[id] = try await refunds(id)
      learnt["statuses"]?[id] = try await statuses(id)
    }
    for id in orders { learnt["orders"]?[id] = try await order(id) }
    for (type, subtype) in notifications {
      learnt["notifications"]?["\(type)/\(subtype ?? "")"] = try await self.notifications(type, subtype, window)
    }
    return learnt
  }

  private func error(_ trail: ServerAPITrail) -> [String: Any] { ["error": trail.errorCode as Any? ?? NSNull()] }

  private func info(_ id: String) async throws -> Any {
    let answer = try await client.transactionInfo(id)
    return answer.fact.map(fields) ?? error(answer.trail)
  }

  private func fields(_ fact: TransactionFact) -> Any {
    var fields: [String: Any?] = [
      "transactionId": fact.transactionId, "originalTransactionId": fact.originalTransactionId,
      "bundleId": fact.bundleId, "productId": fact.productId, "type": fact.productType?.rawValue,
      "quantity": fact.quantity, "purchaseDate": fact.purchaseDate?.milliseconds,
      "originalPurchaseDate": fact.originalPurchaseDate?.milliseconds, "expiresDate": fact.expiresDate?.milliseconds,
      "price": fact.priceMilliunits, "currency": fact.currency, "storefront": fact.details.storefront,
      "environment": fact.environment.rawValue, "ownership": fact.ownership?.rawValue,
      "offerType": fact.details.offerType, "offerIdentifier": fact.details.offerIdentifier,
      "isUpgraded": fact.isUpgraded, "signedDate": fact.signedDate.milliseconds,
      "appTransactionId": fact.details.appTransactionId,
      "subscriptionGroupIdentifier": fact.details.subscriptionGroupIdentifier,
      "webOrderLineItemId": fact.webOrderLineItemId, "appAccountToken": nil, "revocation": nil,
    ]
    if case .stated(let token) = fact.appAccountToken { fields.updateValue(token, forKey: "appAccountToken") }
    if case .stated(.some(let revocation)) = fact.revocation, !revocation.coversSomeItemsOnly {
      fields["revocation"] =
        [
          "date": revocation.date.milliseconds, "reason": revocation.reason as Any? ?? NSNull(),
          "type": revocation.type as Any? ?? NSNull(), "percentage": revocation.percentage as Any? ?? NSNull(),
        ] as [String: Any]
    }
    return fields.mapValues { $0 ?? NSNull() }
  }

  private func history(_ id: String) async throws -> Any {
    let answer = try await client.transactionHistory(id, on: .production)
    guard answer.end == .complete else { return error(answer.trail) }
    return [
      "transactions": answer.transactions.map(\.transactionId), "revision": answer.revision as Any? ?? NSNull(),
      "pages": answer.trail.asked.count,
    ] as [String: Any]
  }

  private func refunds(_ id: String) async throws -> Any {
    let answer = try await client.refundHistory(id, on: .production)
    return answer.end == .complete ? answer.transactions.map(\.transactionId) : error(answer.trail)
  }

  private func statuses(_ id: String) async throws -> Any {
    let answer = try await client.subscriptionStatuses(id, on: .production)
    guard case .found(let found) = answer.outcome else { return error(answer.trail) }
    return found.map { subscription -> [String: Any] in
      [
        "status": subscription.subscriptionStatus?.rawValue as Any? ?? NSNull(),
        "transactionId": subscription.transactionId,
        "renewalDate": subscription.renewalDate?.milliseconds as Any? ?? NSNull(),
        "gracePeriodExpiresDate": subscription.gracePeriodExpiresDate?.milliseconds as Any? ?? NSNull(),
      ]
    }
  }

  private func notifications(
    _ type: String, _ subtype: String?, _ window: (since: Int64, until: Int64)
  ) async throws -> Any {
    let query = NotificationQuery(
      start: Instant(milliseconds: window.since), end: Instant(milliseconds: window.until), type: type,
      subtype: subtype, now: Instant(milliseconds: window.until))
    let answer = try await client.notificationHistory(query, on: .production)
    guard answer.end == .complete, answer.unverifiable.isEmpty else {
      return "\(answer.end), \(answer.unverifiable.count) refused"
    }
    return answer.notifications.map { notification -> [String: Any] in
      [
        "uuid": notification.uuid, "type": notification.type, "subtype": notification.subtype as Any? ?? NSNull(),
        "reason": (try? notification.transaction?.get().refundRequest?.reason) as Any? ?? NSNull(),
        "transactionId": (try? notification.transaction?.get().transactionId) as Any? ?? NSNull(),
      ]
    }
  }

  private func order(_ id: String) async throws -> Any {
    let answer = try await client.lookUpOrder(id)
    switch answer.outcome {
    case .found(let found): return ["status": 0, "transactions": found.map(\.transactionId)] as [String: Any]
    case .notFound, .malformedId, .accountGone: return ["status": 1, "transactions": []] as [String: Any]
    case .unanswered, .fault: return error(answer.trail)
    }
  }
}
