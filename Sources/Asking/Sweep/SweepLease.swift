import AuditStore
import Postgres
import Reconciliation

/// The right to sweep an app. It ends with the session that took it, or at the end of its lease by the server's clock,
/// because a stopped process keeps its session.
struct SweepLease: Sendable {
  /// Another process has taken the sweep over.
  struct Lost: Error {}

  /// The class of the sweepers' locks, beside that of the workers.
  static let lockClass = Migrator.lockKey.0 + 2

  let bundleId: String
  let span: Span
  private let number: Int64
  private let session: OpenSession

  /// - Parameter span: how long the lease lasts unless it is renewed.
  init(bundleId: String, span: Span, session: OpenSession) async throws {
    (self.bundleId, self.span, self.session) = (bundleId, span, session)
    number = try await session.execute("SELECT nextval('night_audit.worker_numbers')").single().int64(0)
  }

  /// Returns false while another process sweeps the app.
  func take() async throws -> Bool {
    try await session.run { session, _ in
      try await session.execute("SELECT pg_advisory_lock(\(Self.lockClass), $1::int)", [.int(number)])
      let taken = try await session.execute(
        """
        INSERT INTO night_audit.sweepers AS lease (bundle_id, number, leased_until) VALUES ($1, $2, \(Self.end("$3")))
        ON CONFLICT (bundle_id) DO UPDATE SET number = excluded.number, leased_until = excluded.leased_until
        WHERE lease.number = excluded.number OR lease.leased_until < clock_timestamp() OR NOT EXISTS (
          SELECT \(Worker.locks(ofClass: Self.lockClass)) AND l.objid = lease.number::oid)
        """, [.text(bundleId), .int(number), .int(span.microseconds)]
      ).affectedRows
      if taken == 1 { return true }
      try await session.execute("SELECT pg_advisory_unlock(\(Self.lockClass), $1::int)", [.int(number)])
      return false
    }
  }

  /// Part of each transaction that stores a page, so that a process that lost the sweep stores no cursor. Throws `Lost`.
  func renew(on connection: borrowing BlockingConnection) throws {
    let renewed = try connection.execute(
      "UPDATE night_audit.sweepers SET leased_until = \(Self.end("$3")) WHERE bundle_id = $1 AND number = $2",
      [.text(bundleId), .int(number), .int(span.microseconds)]
    ).affectedRows
    if renewed == 0 { throw Lost() }
  }

  func renew() async throws { try await session.withConnection { try renew(on: $0) } }

  /// A lost session has released its lock.
  func release() async {
    _ = try? await session.execute("SELECT pg_advisory_unlock(\(Self.lockClass), $1::int)", [.int(number)])
  }

  private static func end(_ microseconds: String) -> String {
    "clock_timestamp() + \(microseconds) * interval '1 microsecond'"
  }
}
