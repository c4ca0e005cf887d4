import AuditStore
import Reconciliation
import SalesStore
import ShopDatabases
import TestSupport
import Testing

@testable import Asking

@Suite struct SweepLeaseTests {
  @Test(.timeLimit(.minutes(1))) func aSweepEndsWithItsSessionOrItsLease() async throws {
    let connect = try await RecheckFixture().connect
    let (first, second, third) = (OpenSession(open: connect), OpenSession(open: connect), OpenSession(open: connect))
    func lease(_ session: OpenSession) async throws -> SweepLease {
      try await SweepLease(bundleId: "com.example.game", span: .hours(1), session: session)
    }
    let (stopped, waiting, last) = (try await lease(first), try await lease(second), try await lease(third))
    #expect(try await stopped.take())
    #expect(try await !waiting.take())
    let otherApp = try await SweepLease(bundleId: "com.example.other", span: .hours(1), session: second)
    #expect(try await otherApp.take())

    // The first process is stopped, and its lease ends.
    try await third.execute("UPDATE night_audit.sweepers SET leased_until = clock_timestamp() - interval '1 second'")
    #expect(try await waiting.take())
    await #expect(throws: SweepLease.Lost.self) { try await stopped.renew() }
    #expect(try await !stopped.take())
    try await waiting.renew()

    // The second process ends, and its session ends with it.
    #expect(try await !last.take())
    await second.close()
    // The server takes a moment to end a session.
    while try await !last.take() {}
    await last.release()
    #expect(try await stopped.take())
    await first.close()
    await third.close()
  }
}
