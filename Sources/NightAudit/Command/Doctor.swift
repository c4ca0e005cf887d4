import AppStore
import Asking
import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Run

/// One thing that was checked.
package struct Diagnosis: Sendable {
  package var subject: String
  /// What is wrong and how to mend it; nil when all is well.
  package var problem: String?
  /// What is not as it should be although a night can live with it, and how to mend it.
  package var warning: String?
  /// The exit status that the problem would end a run with.
  package var status: ExitStatus = .configuration

  package init(
    subject: String, problem: String? = nil, warning: String? = nil, status: ExitStatus = .configuration
  ) {
    self.subject = subject
    self.problem = problem
    self.warning = warning
    self.status = status
  }

  /// Whether there is nothing to be mended.
  package var isFine: Bool { problem == nil && warning == nil }
}

/// Checks everything that a night needs, and says how to mend what is not right.
package struct Doctor: Sendable {
  package let settings: Settings

  package init(settings: Settings) { self.settings = settings }

  /// Looks at everything. Never throws: what cannot be looked at is a problem.
  package func examine() async -> [Diagnosis] {
    var found = settings.warnings.map { Diagnosis(subject: "environment", problem: $0) }
    found += keyFiles()
    found += endpoints()
    found.append(roots())
    found.append(reportDirectory())
    found += await dispatches()
    found += await database()
    return found
  }

  // MARK: - Files

  private func keyFiles() -> [Diagnosis] {
    settings.apps.flatMap { app -> [Diagnosis] in
      let files = [("sharedSecretFile", app.sharedSecretFile), ("privateKeyFile", app.privateKeyFile)]
      var found = files.flatMap { field, path in path.map { keyFile($0, key: "app.\(app.name).\(field)") } ?? [] }
      switch settings.effectiveChannel(of: app) {
      case .serverApi:
        do throws(ConfigurationError) {
          let credentials = try AppleClients.credentials(of: app)
          found.append(Diagnosis(subject: "app.\(app.name) (App Store Server API, key \(credentials.keyId))"))
        } catch {
          // A file that cannot be read was named above.
          if !found.contains(where: { $0.problem != nil }) {
            found.append(Diagnosis(subject: error.key, problem: error.problem))
          }
        }
      case .auto, .verifyReceipt:
        if app.sharedSecretFile == nil {
          found.append(
            Diagnosis(
              subject:
                "app.\(app.name).sharedSecretFile (none: receipts with subscriptions will be refused with 21004)"))
        }
      }
      return found
    }
  }

  func keyFile(_ path: String, key: String) -> [Diagnosis] {
    let subject = "\(key) \(path)"
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0
    if attributes == nil || !FileManager.default.isReadableFile(atPath: path) {
      return [
        Diagnosis(
          subject: subject, problem: "cannot be read; create it, owned by the user that runs night-audit, mode 0600")
      ]
    }
    if (attributes?[.size] as? NSNumber)?.intValue == 0 {
      return [Diagnosis(subject: subject, problem: "is empty; put the key into it")]
    }
    guard mode & 0o077 != 0 else { return [Diagnosis(subject: subject)] }
    return [Diagnosis(subject: subject, warning: "can be read by others; run: chmod 600 \(path)")]
  }

  private func endpoints() -> [Diagnosis] {
    let urls = [
      ("appstore.verifyReceiptUrl", settings.verifyReceiptURL),
      ("appstore.verifyReceiptSandboxUrl", settings.verifyReceiptSandboxURL),
      ("appstore.productionUrl", settings.productionURL), ("appstore.sandboxUrl", settings.sandboxURL),
    ]
    return urls.map { key, text in
      do throws(EndpointURLError) {
        _ = try EndpointURL(text)
        return Diagnosis(subject: "\(key) \(text)")
      } catch {
        return Diagnosis(subject: key, problem: "\(error)")
      }
    }
  }

  private func roots() -> Diagnosis {
    do throws(TrustedRootsError) {
      _ = try TrustedRoots(directory: settings.rootCertificates, pinned: settings.pinRoots)
      return Diagnosis(subject: "appstore.rootCertificates \(settings.rootCertificates)")
    } catch {
      if case .noRoots = error, settings.apps.allSatisfy({ settings.effectiveChannel(of: $0) == .verifyReceipt }) {
        return Diagnosis(
          subject: "appstore.rootCertificates (none: signed transactions stay unconfirmed; run: night-audit trust)")
      }
      return Diagnosis(subject: "appstore.rootCertificates", problem: "\(error)")
    }
  }

  private func reportDirectory() -> Diagnosis {
    var diagnosis = Diagnosis(subject: "report.directory \(settings.reportDirectory)")
    do {
      let folder = try ReportFolder(
        .nightly(directory: settings.reportDirectory, date: "doctor"), token: UUID().uuidString.lowercased())
      defer { folder.discard() }
      try folder.write(Data("night-audit".utf8), as: "probe")
    } catch {
      diagnosis.problem = "\(error)"
      diagnosis.status = .cannotWrite
    }
    return diagnosis
  }

  // MARK: - Database

  private func database() async -> [Diagnosis] {
    let session: PostgresSession
    do throws(PostgresError) {
      session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit doctor")
    } catch {
      return [
        Diagnosis(
          subject: "database",
          problem: "\(error); check database.url or libpq's PG* variables, and that the server accepts this host",
          status: .databaseUnreachable)
      ]
    }
    let settings = settings
    do {
      let found = try await session.withConnection { connection in
        let version = connection.serverVersion
        var found = [Diagnosis(subject: "database (PostgreSQL \(version / 10_000).\(version % 10_000))")]
        if version < 130_000 { found[0].problem = "is older than PostgreSQL 13; upgrade the server" }
        found += try SchemaExamination(settings: settings).examine(connection)
        return found
      }
      await session.close()
      return found
    } catch {
      await session.close()
      return [Diagnosis(subject: "database", problem: "\(error)", status: ExitStatus(for: error))]
    }
  }
}

/// What the doctor asks of the database's schemas.
struct SchemaExamination {
  let settings: Settings

  /// What the sales schema promises: columns with the types that are accepted, those without NULL marked.
  private static let contract: [(table: String, columns: [(name: String, types: [String], isRequired: Bool)])] = {
    let text = ["text", "varchar", "bpchar", "uuid", "int4", "int8", "name"]
    let word = ["text", "varchar", "bpchar"]
    let count = ["int2", "int4", "int8"]
    let money = ["numeric", "int4", "int8"]
    let instant = ["timestamptz"]
    return [
      (
        "orders",
        [
          ("order_id", text, true), ("user_id", text, true), ("bundle_id", word, false), ("product_id", text, true),
          ("quantity", count, true), ("amount", money, true), ("currency", word, true),
          ("status", word + ["enum"], true),
          ("transaction_id", text, false), ("app_account_token", text, false), ("created_at", instant, true),
          ("verified_at", instant, false), ("updated_at", instant, true),
        ]
      ),
      (
        "receipts",
        [
          ("receipt_id", text, true), ("order_id", text, false), ("user_id", text, false), ("payload", word, true),
          ("environment", word + ["enum"], false), ("status", word + ["enum"], true), ("checked_at", instant, false),
          ("received_at", instant, true),
        ]
      ),
      (
        "deliveries",
        [
          ("delivery_id", text, true), ("order_id", text, false), ("user_id", text, true), ("product_id", text, true),
          ("quantity", count, true), ("delivered_at", instant, true), ("revoked_at", instant, false),
        ]
      ),
    ]
  }()

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    var found: [Diagnosis] = []
    do {
      try Migrator.requireCurrent(connection)
      found.append(Diagnosis(subject: "schema night_audit"))
      found += try ownTables(connection)
    } catch let error as SchemaError {
      found.append(Diagnosis(subject: "schema night_audit", problem: "\(error)"))
    }
    for (table, columns) in SchemaExamination.contract { found += try relation(table, columns, connection) }
    return found
  }

  private func relation(
    _ table: String, _ columns: [(name: String, types: [String], isRequired: Bool)],
    _ connection: borrowing BlockingConnection
  ) throws -> [Diagnosis] {
    let name = "\(settings.salesSchema).\(table)"
    let rows = try connection.execute(
      """
      SELECT a.attname::text, CASE WHEN t.typtype = 'e' THEN 'enum' ELSE t.typname::text END,
        has_table_privilege(c.oid, 'SELECT') OR has_column_privilege(c.oid, a.attnum, 'SELECT')
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      JOIN pg_type t ON t.oid = a.atttypid
      WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
      """, [.text(settings.salesSchema), .text(table)])
    if rows.isEmpty {
      return [
        Diagnosis(
          subject: name,
          problem: "is missing; create a table or view of that name, or run: night-audit init --with-sales-schema")
      ]
    }
    var present: [String: (type: String, isReadable: Bool)] = [:]
    for row in rows { present[try row.text(0)] = (try row.text(1), try row.bool(2)) }
    var found: [Diagnosis] = []
    for column in columns {
      var diagnosis = Diagnosis(subject: "\(name).\(column.name)")
      if let known = present[column.name] {
        if !known.isReadable {
          diagnosis.problem = "may not be read; run as its owner: GRANT SELECT ON \(name) TO \(try role(connection))"
        } else if !column.types.contains(known.type) {
          diagnosis.problem = "has the type \(known.type); expected \(column.types[0]); cast it in a view"
        }
      } else {
        diagnosis.problem =
          "is missing; add the column to the table or view\(column.isRequired ? "" : " (it may be NULL throughout)")"
      }
      if diagnosis.problem != nil { found.append(diagnosis) }
    }
    let usage = try connection.execute("SELECT has_schema_privilege($1, 'USAGE')", [.text(settings.salesSchema)])
      .single().bool(0)
    if !usage {
      found.append(
        Diagnosis(
          subject: "schema \(settings.salesSchema)",
          problem: "may not be used; run: GRANT USAGE ON SCHEMA \(settings.salesSchema) TO \(try role(connection))"))
    }
    return found.isEmpty ? [Diagnosis(subject: "\(name) (\(columns.count) columns)")] : found
  }

  private func ownTables(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let rows = try connection.execute(
      """
      SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'night_audit' AND c.relkind = 'r'
        AND NOT has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE')
      """)
    let role = try role(connection)
    return try rows.map { row in
      let table = try row.text(0)
      return Diagnosis(
        subject: "night_audit.\(table)",
        problem:
          "may not be written; run: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA night_audit TO \(role)"
      )
    }
  }

  private func role(_ connection: borrowing BlockingConnection) throws -> String {
    try connection.execute("SELECT quote_ident(current_user)").single().text(0)
  }
}
