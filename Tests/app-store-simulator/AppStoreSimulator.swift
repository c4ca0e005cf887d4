import ArgumentParser
import Foundation

/// Simulates Apple's server APIs on loopback, from a world file, with faults on request.
@main
struct AppStoreSimulator: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app-store-simulator",
    abstract: "Apple's server interfaces on loopback, for rehearsals and tests.",
    subcommands: [Serve.self, SampleShopCommand.self], defaultSubcommand: Serve.self)
}

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve the interfaces of a world file.",
    discussion: """
      Serves /production/verifyReceipt and /sandbox/verifyReceipt from the receipts and transactions of a world file, \
      and answers like Apple's servers, troubles included. Under /simulator: POST faults and POST world change both at \
      run time, POST clock ({"now":MS}, {"advance":MS} or {} for the machine's clock) sets the time of day, GET requests \
      tells what was asked, GET health says that it is there, POST payload makes what clients send, signed: {"form": \
      "signed", "app", "transaction", "notification", "renewalInfo" or "appTransaction", "transactions": [ID], \
      "environment", "bundleId", "signedDate", "type", "damage": what transport did to it}.

      The App Store Server API is under /production/inApps and /sandbox/inApps: v1/transactions, v2/history, \
      v1/subscriptions, v2/refund/lookup, v1/notifications/history and v1/lookup. It signs with certificates of its own, made anew at \
      each start; --root-certificate writes the root. Tokens are checked when there is a key to check them with.

      What the world file may have for it, dates in milliseconds since the epoch:
        now            the time of day; what is later has not happened yet
        errors         {"ID": {"errorCode": 4040002, "httpStatus": 404}}
        notifications  [{"type", "subtype", "uuid", "transactionId",
                       "environment", "bundleId", "signedDate"}], beside those
                       that follow from purchases, refunds and reversals
        apps           issuerId, keyId, publicKey (PEM), publicKeyFile,
                       sendsNotifications: false for an empty history
        faults         what goes wrong, as below
        outages        [{"from", "until", "path", "retryAfter"}]
        transactions   revocationType, revocationPercentage,
                       refundReversedDate, price, currency, storefront,
                       storefrontId, transactionReason,
                       subscriptionGroupIdentifier, subscriptionStatus,
                       renewalDate, renewalPrice, gracePeriodExpiresDate,
                       isInBillingRetryPeriod, isUpgrade, isUpgraded,
                       redeemsOffer, offerType, offerIdentifier, offerPeriod,
                       offerDiscountType, consumptionRequestDate,
                       consumptionRequestReason, refundDeclinedDate,
                       appTransactionId,
                       billingPlanType, previousOriginalTransactionId,
                       commitmentInfo, advancedCommerceInfo,
                       bundleProductID, bundleTransactionID,
                       bundleOriginalTransactionID, knownFrom: answers and
                       notifications come later than the purchase,
                       isNotified: false if its notifications were lost,
                       firstRevocationDate: what answers state until
                       revocationRestatedDate, orderId: of
                       Apple's mail, and customer: whose history it is in,
                       else that of its appAccountToken, else of its
                       originalTransactionId
        receipts       status, creationDate, answeredAs: the payload whose
                       answer it gets, dates: "all", "text" or
                       "milliseconds", omit: fields that are left out

      The App Store Connect API is under /v1/salesReports and /v1/financeReports, by Pacific day and fiscal period, with \
      Apple's headers. The world has for it:
        connect        {"vendor", "issuerId", "keyId", "publicKey",
                       "uncollectedPermille", "rows": [{"SKU": "x", "Units": "1",
                       "Begin Date": "2026-11-19", ...}]}
        apps           sku
        transactions   reportedDate, refundReportedDate, reportedPrice,
                       isUnreported, isReportOnly

      A fault: {"path", "subjects", "from", "until", "share", "next", "latency", "httpStatus", "status",
        "isRetryable", "errorCode", "headers", "retryAfter", "fields", "payload",
        "stranger", "badSignature", "receipt", "compression", "body"}. path is the beginning of the paths
        that meet it, subjects the ids, from and until the time, share how many
        of them, next for how many requests; retryAfter milliseconds from
        now; fields are put into the answer, payload into what is signed in it;
        a stranger signs with a chain of another root; receipt is a shape of
        verifyReceipt's receipt: emptyReceipt, textStatus, noBundleId, noInApp,
        nullInApp, objectInApp, nestedInApp, surrogateInApp, textLatestInfo,
        lacksPurchases, otherEnvironment or otherApp; compression is gzip or bomb, for requests
        that accept gzip; body is empty, html,
        truncated, wrongType, huge or closed. For reports "connect": {"failure":
        {"status", "code", "detail"}, "encoding", "compressions", "isCut", "isBomb",
        "isHeaderOnly", "extraColumn", "isReversed", "missingColumn", "hasBlanks",
        "hasTrailingTab", "type", "hasZeroUnits", "hasCRLF", "hasSecondBlock",
        "hasBadTotals", "version"}.
      """)

  @Option(help: ArgumentHelp("The world: apps, transactions and receipts, as JSON.", valueName: "file"))
  var world: String

  @Option(help: "The port to listen on; 0 picks a free one.")
  var port = 0

  @Option(help: ArgumentHelp("Write the port to this file when ready.", valueName: "file"))
  var portFile: String?

  @Option(help: "How long each answer takes, such as 4s or 250ms.")
  var latency = Latency(milliseconds: 0)

  @Option(help: "The share by which the latency varies to either side, 0 to 1.")
  var latencyJitter = 0.0

  @Option(help: "The share of requests that get an error from Apple, 0 to 1.")
  var errorRate = 0.0

  @Option(help: "The share of answers that are damaged, 0 to 1.")
  var garbageRate = 0.0

  @Flag(help: "Start with an outage: every request gets HTTP 503.")
  var outage = false

  @Option(help: ArgumentHelp("Append one JSON line for each request to this file.", valueName: "file"))
  var log: String?

  @Option(help: ArgumentHelp("Write the root certificate of what is signed to this file, as PEM.", valueName: "file"))
  var rootCertificate: String?

  @Option(
    help: ArgumentHelp(
      "Write the root certificate of the receipts that POST payload makes to this file, as PEM.", valueName: "file"))
  var receiptRootCertificate: String?

  @Option(help: ArgumentHelp("A P-256 public key as PEM to check tokens with; may be repeated.", valueName: "file"))
  var publicKey: [String] = []

  @Option(help: ArgumentHelp("Answer 429 beyond so many requests a second and interface.", valueName: "rate"))
  var enforceLimits: Double?

  @Option(help: "The seed of the faults: equal seeds give equal faults for a receipt.")
  var seed: UInt64 = 1

  func validate() throws {
    guard (0...65_535).contains(port) else { throw ValidationError("--port must be between 0 and 65535.") }
    if let enforceLimits, !(enforceLimits > 0 && enforceLimits <= 1e6) {
      throw ValidationError("--enforce-limits must be above 0.")
    }
    for (name, share) in [
      ("--latency-jitter", latencyJitter), ("--error-rate", errorRate), ("--garbage-rate", garbageRate),
    ] where !(0...1).contains(share) {
      throw ValidationError("\(name) must be between 0 and 1.")
    }
  }

  func run() async throws {
    let settings = FaultSettings(
      latency: latency, latencyJitter: latencyJitter, errorRate: errorRate, garbageRate: garbageRate, outage: outage)
    let simulator = Simulator(
      world: try readWorld(), faults: Faults(settings: settings, seed: seed), log: try RequestLog(path: log),
      serverAPI: try serverAPI())
    if let receiptRootCertificate {
      let pem = try simulator.receiptAuthority.get().chain.rootPEM
      try Data(pem.utf8).write(to: URL(fileURLWithPath: receiptRootCertificate), options: .atomic)
    }
    try await SimulatorServer(simulator: simulator, port: port).run { port in
      if let portFile {
        try Data("\(port)\n".utf8).write(to: URL(fileURLWithPath: portFile), options: .atomic)
      }
      try FileHandle.standardOutput.write(contentsOf: Data("listening on http://127.0.0.1:\(port)\n".utf8))
    }
  }

  private func serverAPI() throws -> ServerAPIInterface {
    let authority = try SigningAuthority()
    if let rootCertificate {
      try Data(authority.chain.rootPEM.utf8).write(to: URL(fileURLWithPath: rootCertificate), options: .atomic)
    }
    var keys = ClientToken.Keys()
    for file in publicKey {
      do {
        try keys.add(pem: String(contentsOfFile: file, encoding: .utf8))
      } catch {
        throw ValidationError("\(file) cannot be read as a P-256 public key in PEM: \(error)")
      }
    }
    return ServerAPIInterface(authority: authority, limits: RateLimits(rate: enforceLimits), keys: keys)
  }

  private func readWorld() throws -> World {
    do {
      return try World(json: Data(contentsOf: URL(fileURLWithPath: world)))
    } catch {
      throw ValidationError("\(world) cannot be read as a world: \(error)")
    }
  }
}

extension Latency: ExpressibleByArgument {
  init?(argument: String) { self.init(argument) }
}
