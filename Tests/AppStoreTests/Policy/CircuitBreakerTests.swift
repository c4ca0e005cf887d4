import AppStore
import Testing

struct CircuitBreakerTests {
  private static let policy = {
    var policy = CircuitBreaker.Policy()
    policy.consecutiveFailures = 3
    policy.window = 10
    policy.failureShare = 0.5
    policy.firstPause = .seconds(10)
    policy.longestPause = .seconds(30)
    policy.probes = 2
    return policy
  }()

  @Test func consecutiveFailuresOpenTheBreaker() throws {
    var breaker = CircuitBreaker(policy: Self.policy)
    try breaker.call(.failure, .failure, .success, .failure, .failure, at: .zero)
    #expect(!breaker.isOpen)
    try breaker.call(.failure, at: .seconds(1))
    #expect(breaker.isOpen)
    #expect(breaker.admit(now: .seconds(10)) == nil)
  }

  @Test func aFailureShareInAFullWindowOpensTheBreaker() throws {
    var breaker = CircuitBreaker(policy: Self.policy)
    // Five of nine, never three in a row: the window is not full yet.
    try breaker.call(
      .failure, .failure, .success, .failure, .failure, .success, .failure, .success, .success, at: .zero)
    #expect(!breaker.isOpen)
    try breaker.call(.success, at: .zero)
    #expect(!breaker.isOpen)
    // The window slides: the first failure leaves, a new one comes.
    try breaker.call(.failure, at: .zero)
    #expect(breaker.isOpen)
  }

  @Test func oldFailuresLeaveTheWindow() throws {
    var breaker = CircuitBreaker(policy: Self.policy)
    for _ in 0..<100 {
      try breaker.call(.failure, .success, .success, .success, at: .zero)
      #expect(!breaker.isOpen)
    }
  }

  @Test func successfulProbesCloseTheBreaker() throws {
    var breaker = try Self.opened(at: .zero)
    let first = try breaker.permit(at: .seconds(10))
    let second = try breaker.permit(at: .seconds(10))
    #expect(breaker.admit(now: .seconds(10)) == nil)
    breaker.record(.success, permit: first, now: .seconds(12))
    #expect(breaker.isOpen)
    #expect(breaker.admit(now: .seconds(12)) == nil)
    breaker.record(.success, permit: second, now: .seconds(13))
    #expect(!breaker.isOpen)
    try breaker.call(.failure, .failure, at: .seconds(14))
    #expect(!breaker.isOpen)
  }

  @Test func aFailedProbeDoublesThePauseUpToALimit() throws {
    var breaker = try Self.opened(at: .zero)
    try breaker.call(.failure, at: .seconds(10))
    #expect(breaker.admit(now: .seconds(29)) == nil)
    try breaker.call(.failure, at: .seconds(30))
    #expect(breaker.admit(now: .seconds(59)) == nil)
    try breaker.call(.failure, at: .seconds(60))
    #expect(breaker.admit(now: .seconds(89)) == nil)
    try breaker.call(.success, .success, at: .seconds(90))
    try breaker.call(.failure, .failure, .failure, at: .seconds(91))
    #expect(breaker.admit(now: .seconds(100)) == nil)
  }

  @Test func anAbandonedProbeReleasesItsPermit() throws {
    var breaker = try Self.opened(at: .zero)
    let first = try breaker.permit(at: .seconds(10))
    _ = try breaker.permit(at: .seconds(10))
    breaker.record(.abandoned, permit: first, now: .seconds(11))
    _ = try breaker.permit(at: .seconds(11))
  }

  @Test(arguments: [CircuitBreaker.CallResult.success, .failure, .abandoned])
  func answersToEarlierRequestsDoNotAffectAnOpenBreaker(late: CircuitBreaker.CallResult) throws {
    var breaker = CircuitBreaker(policy: Self.policy)
    let permits = try (0..<20).map { _ in try breaker.permit(at: .zero) }
    for permit in permits.prefix(3) { breaker.record(.failure, permit: permit, now: .seconds(1)) }
    for permit in permits.dropFirst(3) { breaker.record(late, permit: permit, now: .seconds(2)) }
    #expect(breaker.admit(now: .seconds(10)) == nil)
    let probe = try breaker.permit(at: .seconds(11))
    breaker.record(late, permit: permits[19], now: .seconds(11))
    breaker.record(.success, permit: probe, now: .seconds(12))
    try breaker.call(.success, at: .seconds(12))
    #expect(!breaker.isOpen)
  }

  private static func opened(at now: Duration) throws -> CircuitBreaker {
    var breaker = CircuitBreaker(policy: policy)
    try breaker.call(.failure, .failure, .failure, at: now)
    try #require(breaker.isOpen)
    return breaker
  }
}

extension CircuitBreaker {
  fileprivate struct Refused: Error {}

  fileprivate mutating func permit(at now: Duration) throws -> Permit {
    guard let permit = admit(now: now) else { throw Refused() }
    return permit
  }

  fileprivate mutating func call(_ results: CallResult..., at now: Duration) throws {
    for result in results { record(result, permit: try permit(at: now), now: now) }
  }
}
