import AppStore
import AuditStore
import Postgres
import Reconciliation

/// Request rates that all workers of a database share: one row of `night_audit.rates` per interface. A request moves
/// the row's time forward. The server's clock counts, because the clocks of hosts may differ.
package struct SharedRates: Sendable {
  private let session: OpenSession

  /// The row's time. It is null if it lies beyond the longest Retry-After and a minute of turns: the server's clock was
  /// ahead once, and all workers would wait until that time.
  private static let believed = """
    CASE WHEN r.next_turn <= clock_timestamp() + interval '\(RetryAfter.longest.wholeSeconds + 60) seconds'
      THEN r.next_turn END
    """

  /// - Parameter connect: opens a session of its own, so that nothing delays the turns.
  package init(connect: @escaping @Sendable () async throws -> PostgresSession) {
    // A lost database ends the asking elsewhere. Until then each gate keeps its own pace.
    session = OpenSession(waitLimit: .zero) {
      let session = try await connect()
      // A crash of the server loses a tenth of a second of turns at most.
      try await session.executeScript("SET synchronous_commit = off")
      return session
    }
  }

  package func close() async { await session.close() }

  /// The turns of one interface; nil if the rate is unlimited (nil, zero or less).
  package func turns(app: String, side: AppleHost, interface: String, rate: Double?) -> RateGate.SharedTurns? {
    guard let rate, rate > 0 else { return nil }
    let key: [PostgresValue] = [.text(app), .text("\(side)"), .text(interface)]
    let interval = Int64((1_000_000 / rate).rounded(.up))
    let session = session
    return RateGate.SharedTurns(
      take: { count in
        let wait = try await session.execute(
          """
          INSERT INTO night_audit.rates AS r (app, side, interface, next_turn)
          VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond')
          ON CONFLICT (app, side, interface) DO UPDATE
            SET next_turn = greatest(\(Self.believed), clock_timestamp()) + $4 * interval '1 microsecond'
          RETURNING (extract(epoch FROM next_turn - clock_timestamp()) * 1000000)::bigint - $4
          """, key + [.int(interval * Int64(count))]
        ).single().int64(0)
        return .microseconds(max(wait, 0))
      },
      shut: { pause in
        Task {
          // This worker waits even if it cannot tell the others.
          _ = try? await session.execute(
            """
            INSERT INTO night_audit.rates AS r (app, side, interface, next_turn)
            VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond')
            ON CONFLICT (app, side, interface) DO UPDATE
              SET next_turn = greatest(\(Self.believed), excluded.next_turn)
            """, key + [.int(Span(pause).microseconds)])
        }
      })
  }
}
