import AppStore
import Postgres
import Reconciliation

/// The rates that all workers of a database keep together: `night_audit.rates`, one row for each app, side and interface.
///
/// A turn is taken by moving the row's time on. The server's clock counts, so that hosts need not agree on theirs.
package struct SharedRates: Sendable {
  private let session: OpenSession

  /// The row's time, null where no rule can have put it: no wait is longer than what is believed of Apple, and a minute's turns
  /// behind it. Beyond that the server's clock was ahead once, and would have everybody wait until it is that late again.
  private static let believed = """
    CASE WHEN r.next_turn <= clock_timestamp() + interval '\(RetryAfter.longest.wholeSeconds + 60) seconds'
      THEN r.next_turn END
    """

  /// - Parameter connect: opens a session of its own: nothing may hold up the pace.
  package init(connect: @escaping @Sendable () async throws -> PostgresSession) {
    // A database that is gone stops the asking elsewhere; meanwhile each gate keeps its own pace.
    session = OpenSession(patience: .zero) {
      let session = try await connect()
      // What is lost with the server is a tenth of a second.
      try await session.executeScript("SET synchronous_commit = off")
      return session
    }
  }

  package func close() async { await session.close() }

  /// The turns of one interface.
  ///
  /// - Parameter rate: requests a second; nil, zero or less is unlimited and needs no turns.
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
      shut: { hold in
        let microseconds = hold.components.seconds * 1_000_000 + hold.components.attoseconds / 1_000_000_000_000
        Task {
          // Whoever cannot tell the others obeys all the same.
          _ = try? await session.execute(
            """
            INSERT INTO night_audit.rates AS r (app, side, interface, next_turn)
            VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond')
            ON CONFLICT (app, side, interface) DO UPDATE
              SET next_turn = greatest(\(Self.believed), excluded.next_turn)
            """, key + [.int(microseconds)])
        }
      })
  }
}
