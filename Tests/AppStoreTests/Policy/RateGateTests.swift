import Reconciliation
import Synchronization
import Testing

@testable import AppStore

@Suite(.timeLimit(.minutes(10)))
struct RateGateTests {
  /// A gate whose shared row cannot be reached keeps its own pace.
  @Test(arguments: [false, true])
  func concurrentRequestsAreAdmittedAtTheRate(hasLostItsRow: Bool) async throws {
    struct Gone: Error {}
    let clock = StoppedClock()
    let lost = RateGate.SharedTurns(take: { _ in throw Gone() }, shut: { _ in })
    let gate = RateGate(rate: 50, clock: clock.gateClock, shared: hasLostItsRow ? lost : nil)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<500 { group.addTask { try await gate.admit() } }
      try await group.waitForAll()
    }
    // 500 at 50 per second take 10 seconds, less the burst, on a clock that only sleeping advances.
    #expect((.seconds(9)...(.seconds(10))).contains(clock.slept))
  }

  @Test func requestsAreAdmittedInOrder() async throws {
    let sleeper = Sleeper()
    let gate = RateGate(rate: 1, clock: sleeper.gateClock)
    try await gate.admit()
    let order = Order()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<5 {
        group.addTask {
          try await gate.admit()
          order.note(number)
        }
        // The first sleeps and the others queue before the next one starts.
        while number == 0 ? !sleeper.isAsleep : gate.waitingCount < number { await Task.yield() }
      }
      sleeper.wakeForGood()
      try await group.waitForAll()
    }
    #expect(order.numbers == [0, 1, 2, 3, 4])
  }

  @Test func aCancelledRequestLeavesTheQueue() async throws {
    let sleeper = Sleeper()
    let gate = RateGate(rate: 1, clock: sleeper.gateClock)
    try await gate.admit()
    let first = Task { try await gate.admit() }
    while !sleeper.isAsleep { await Task.yield() }
    let second = Task { try await gate.admit() }
    while gate.waitingCount < 1 { await Task.yield() }
    let third = Task { try await gate.admit() }
    while gate.waitingCount < 2 { await Task.yield() }

    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(gate.waitingCount == 1)
    // The first is asleep and not in line, so its place goes to the third.
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    sleeper.wakeForGood()
    try await third.value
  }

  @Test func aTaskThatIsCancelledAlreadyIsNotAdmitted() async {
    let gate = RateGate(rate: nil)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await gate.admit()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func abandonedRequestsTakeNoTurn() async throws {
    let clock = StoppedClock()
    let gate = RateGate(rate: 1, clock: clock.gateClock)
    try await gate.admit(while: { true })
    let isWanted = Mutex(true)
    clock.onFirstSleep { isWanted.withLock { $0 = false } }
    for _ in 0..<3 {
      await #expect(throws: CancellationError.self) { try await gate.admit(while: { isWanted.withLock { $0 } }) }
    }
    #expect(clock.slept < .seconds(1))
    try await gate.admit()
    #expect(clock.slept == .seconds(1))
  }

  @Test func aPauseDelaysWaitingRequests() async throws {
    let clock = StoppedClock()
    let gate = RateGate(rate: 1, clock: clock.gateClock)
    try await gate.admit()
    clock.onFirstSleep { gate.shut(for: .seconds(30)) }
    try await gate.admit()
    #expect(clock.slept == .seconds(30))
  }

  @Test func gatesShareOneRate() async throws {
    let clock = StoppedClock()
    let row = Mutex(Duration.zero)
    let turns = RateGate.SharedTurns(
      take: { count in
        row.withLock { next in
          let (now, first) = (clock.slept, max(next, clock.slept))
          next = first + Duration.milliseconds(200) * count
          return first - now
        }
      }, shut: { _ in })
    let gates = (0..<3).map { _ in RateGate(rate: 5, clock: clock.gateClock, shared: turns) }
    var times: [Duration] = []
    for number in 0..<300 {
      try await gates[number % 3].admit()
      times.append(clock.slept)
    }
    #expect((.seconds(59)...(.seconds(60))).contains(clock.slept))
    #expect(mostInOneSecond(times) <= 5)
  }

  /// A pause by another process counts as rate-limited; shared or rare turns do not.
  @Test(arguments: [(5, 3_600, true), (5, 5, false), (0.05, 100, false), (0.05, 3_600, true)] as [(Double, Int, Bool)])
  func aSharedPauseCountsAsRateLimited(rate: Double, ahead: Int, isRateLimited: Bool) async throws {
    let clock = StoppedClock()
    let gate = RateGate(
      rate: rate, clock: clock.gateClock,
      shared: RateGate.SharedTurns(take: { _ in .seconds(ahead) - clock.slept }, shut: { _ in }))
    #expect(!gate.isRateLimited)
    let admitted: Void? = try? await gate.admit(while: { !gate.isRateLimited })
    #expect((admitted == nil) == isRateLimited && gate.isRateLimited == isRateLimited)
    #expect(isRateLimited ? clock.slept < .seconds(1) : clock.slept == .seconds(ahead))
  }

  @Test func aLongPauseCountsAsRateLimited() {
    let clock = StoppedClock()
    let gate = RateGate(rate: 5, clock: clock.gateClock)
    gate.shut(for: .seconds(1))
    #expect(!gate.isRateLimited)
    gate.shut(for: .seconds(2))
    #expect(gate.isRateLimited)
  }

  /// A single waiter reserves one burst, so that other processes lose nothing; many waiters reserve once a second.
  @Test func concurrentRequestsReserveTurnsTogether() async throws {
    let sleeper = Sleeper()
    let taken = Mutex<[Int]>([])
    let gate = RateGate(
      rate: 50, clock: sleeper.gateClock,
      shared: RateGate.SharedTurns(
        take: { count in
          taken.withLock { $0.append(count) }
          return .milliseconds(10)
        }, shut: { _ in }))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<120 {
        group.addTask { try await gate.admit() }
        while number == 0 ? !sleeper.isAsleep : gate.waitingCount < number { await Task.yield() }
      }
      sleeper.wakeForGood()
      try await group.waitForAll()
    }
    #expect(taken.withLock { $0 }.first == 5)
    #expect(taken.withLock { $0 }.dropFirst().prefix(2) == [50, 50])
  }

  /// Status 429 concerns every request. After a server error, the pause is a tenth of the remaining time.
  @Test(arguments: [(429, 3_600), (503, 120), (500, 120), (nil, 120)] as [(Int?, Int64)])
  func aServerInTroubleDoesNotEndTheNight(httpStatus: Int?, seconds: Int64) async throws {
    let clock = StoppedClock()
    let night = NightTime()
    night.ends(in: .seconds(1_200), uptime: .zero)
    let gate = RateGate(rate: nil, clock: clock.gateClock, night: night)
    gate.obey(retryAfter: .hours(1), httpStatus: httpStatus)
    try await gate.admit()
    #expect(clock.slept == .seconds(seconds))
  }
}

/// A clock on which sleepers stay asleep until woken or cancelled.
private final class Sleeper: Sendable {
  private let time = Mutex(Duration.zero)
  private let asleep = Mutex(false)
  private let awake = Mutex(false)

  var isAsleep: Bool { asleep.withLock { $0 } }

  func wakeForGood() { awake.withLock { $0 = true } }

  var gateClock: RateGate.Clock {
    RateGate.Clock(
      uptime: { self.time.withLock { $0 } },
      sleep: { span throws(CancellationError) in
        self.asleep.withLock { $0 = true }
        while !self.awake.withLock({ $0 }) {
          if Task.isCancelled { throw CancellationError() }
          await Task.yield()
        }
        self.time.withLock { $0 += span }
      })
  }
}

private final class Order: Sendable {
  private let noted = Mutex<[Int]>([])

  var numbers: [Int] { noted.withLock { $0 } }

  func note(_ number: Int) { noted.withLock { $0.append(number) } }
}
