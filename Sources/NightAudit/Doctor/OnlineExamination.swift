import AppStore
import Asking
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings
import TieOut

extension Doctor {
  /// An ID that Apple never assigned; the expected answer is that it is unknown.
  private static let unusedID = "1"

  /// Makes one harmless request to Apple for each credential, and compares the clocks.
  func online() async -> [Diagnosis] {
    let transport = HTTPTransport(timeout: settings.timeout, concurrency: 1)
    let clock = await clock(transport)
    var found = [clock].compactMap(\.self)
    if clock?.problem == nil {
      for app in settings.apps { if let answer = await question(app, transport) { found.append(answer) } }
      found += await reports()
    }
    await transport.shutdown()
    return found
  }

  // MARK: - Clock

  private func clock(_ transport: HTTPTransport) async -> Diagnosis? {
    let usesServerAPI = !settings.serverAPIApps.isEmpty
    let url = usesServerAPI ? settings.productionURL : settings.verifyReceiptURL
    guard (try? EndpointURL(url)) != nil,
      let result = try? await transport.date(at: url, userAgent: "night-audit/\(Version.current)")
    else { return nil }
    switch result {
    case .failure(let silence):
      return .problem(
        "Apple at \(url)",
        """
        was not reached: \(silence.detail); check the network path of this host (firewall, HTTPS_PROXY, NO_PROXY) and \
        \(usesServerAPI ? "appstore.productionUrl" : "appstore.verifyReceiptUrl")
        """)
    case .success(nil): return .fine("Apple at \(url) (reached; its answer has no date)")
    case .success(let date?):
      let clocks = Clocks(host: Instant.now.wholeSecond, server: date)
      let difference = (clocks.host - clocks.server).magnitude
      if difference <= settings.clockSkew {
        return .fine("Apple at \(url) (reached; clocks differ by \(difference.wholeSeconds) s)")
      }
      return .problem(
        "clock",
        "\(clocks.lead(over: "Apple")) (Apple's clock: \(date.text)); set the clock by NTP (chronyc tracking)")
    }
  }

  // MARK: - Credentials

  private func question(_ app: Settings.App, _ transport: HTTPTransport) async -> Diagnosis? {
    let subject = "app.\(app.name), asked of Apple"
    do {
      switch settings.effectiveChannel(of: app) {
      case .serverApi:
        let client = try AppleClients.serverAPI(
          of: app, settings: settings, transport: transport, roots: .none, now: { .now })
        switch try await client.transactionInfo(Doctor.unusedID).outcome {
        case .fault(let fault): return .problem(subject, fault.message)
        case .unanswered(let silence): return .problem(subject, Doctor.words(silence))
        case .found, .notFound, .malformedId, .accountGone:
          return .fine("\(subject) (key, issuer and bundle are accepted)")
        }
      case .auto, .verifyReceipt:
        guard let payload = await newestReceipt(bundleId: app.bundleId) else {
          return .fine(
            "\(subject) (the shared secret cannot be tried: there is no app receipt in the shop's table yet)")
        }
        let client = try AppleClients.verifyReceipt(of: app, settings: settings, transport: transport, now: { .now })
        let secret = try app.sharedSecretFile.map { try SecretFile.read($0, key: "app.\(app.name).sharedSecretFile") }
        switch try await client.verify(payload: payload, sharedSecret: secret).outcome {
        case .fault(let fault): return .problem(subject, fault.message)
        case .unanswered(let silence): return .problem(subject, Doctor.words(silence))
        case .verified, .rejected, .accountGone, .review:
          return .fine("\(subject) (the newest app receipt and the shared secret are accepted)")
        }
      }
    } catch is ConfigurationError {
      // Faults of the key are reported by the offline checks.
      return nil
    } catch {
      return .problem(subject, "\(error)")
    }
  }

  private static func words(_ silence: Silence) -> String {
    "Apple did not answer (\(silence.reason), \(silence.detail)); try again, and look at Apple's system status page"
  }

  private func newestReceipt(bundleId: String) async -> String? {
    let settings = settings
    return try? await withBlockingThread { scope in
      let connection = try SalesStore.open(settings, scope, applicationName: "night-audit doctor")
      let schema = try PostgresIdentifier(settings.salesSchema).sql
      var reader = try connection.copyOut(
        """
        SELECT r.payload::text FROM \(schema).receipts r
        LEFT JOIN \(schema).orders o ON o.order_id::text COLLATE "C" = r.order_id::text
        WHERE octet_length(r.payload::text) BETWEEN 100 AND 1000000 AND r.status::text = 'verified'
          AND coalesce(o.bundle_id::text, \(try PostgresLiteral.text(bundleId))) COLLATE "C"
            = \(try PostgresLiteral.text(bundleId))
        ORDER BY r.received_at DESC NULLS LAST LIMIT 50
        """)
      while try reader.advance() {
        guard try reader.isText(0) else { continue }
        let text = try reader.text(0)
        if ReceivedPayload(text).kind == .app { return text }
      }
      return nil
    }
  }

  // MARK: - Reports

  /// Asks for yesterday's sales report of each vendor number. A missing report is no fault.
  private func reports() async -> [Diagnosis] {
    guard settings.appStoreConnect.privateKeyFile != nil,
      let connect = try? ConnectAccount(settings.appStoreConnect)
    else { return [] }
    let transport = HTTPTransport(timeout: settings.timeout, concurrency: 1, inflates: false)
    var found: [Diagnosis] = []
    for vendor in connect.vendors {
      let subject = "appStoreConnect, vendor \(vendor), asked of Apple"
      do {
        let client = try ConnectClient(
          transport: transport, url: connect.url, credentials: connect.credentials, version: Version.current,
          now: { .now }
        ) { _ in }
        let day = Period.dayBefore(.now - .days(1), in: settings.timeZone).until
        let answer = try await client.download(
          ConnectQuery(
            vendor: vendor, kind: .sales(frequency: "DAILY", version: connect.salesVersion), reportDate: day))
        switch answer.outcome {
        case .file, .noSales, .notYet, .gone:
          found.append(.fine("\(subject) (key, role and vendor number are accepted)"))
        case .otherVersion(let version):
          found.append(
            .warning(
              "appStoreConnect.salesVersion", "Apple demands \(version ?? "another") instead of \(connect.salesVersion)"
            ))
        case .refused(let refusal): found.append(.problem(subject, "\(refusal)"))
        case .unanswered(let silence): found.append(.warning(subject, Doctor.words(silence)))
        }
      } catch {
        found.append(.problem(subject, "\(error)"))
      }
    }
    await transport.shutdown()
    return found
  }
}
