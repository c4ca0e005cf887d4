import AuditStore

/// The asking loop of one worker as a value: events in, actions out. It has no clock and does no I/O.
struct AskingLoop {
  /// The state of the world at one step.
  struct Conditions {
    var now: ContinuousClock.Instant
    /// Why asking must end; nil while it may go on.
    var reasonToEnd: String?
    /// The number of questions that may start on a lane.
    var places: (AskingGate.Lane) -> Int
  }

  enum Action {
    /// Lease the next due checks.
    case take
    /// Store all answers, and lease checks that are due by now.
    case takeNew
    /// Describe leased checks again that had to wait.
    case takeAgain([CheckSubject])
    /// Read and judge these checks, and find their questions.
    case read([CheckInProgress])
    case ask(CheckInProgress)
    /// Release all leases, and see which due checks remain.
    case look
    /// Lease checks that other workers have released or made due. `isLast`: they own no others.
    case reacquire(isLast: Bool)
    case announceWait
    /// Judge the `left` checks offline, and limit the time for answers under way.
    case end(reason: String, left: [CheckInProgress], isWaiting: Bool)
    /// Wait for the next event.
    case wait
    case finish(isContinuedByOthers: Bool)
  }

  enum Event {
    case took([CheckInProgress])
    case tookNew([CheckInProgress])
    case tookAgain([CheckInProgress])
    /// The checks with questions. The others have their results.
    case read([CheckInProgress])
    case ended(CheckInProgress, Ending)
    case looked(CheckQueue.Remainder)
    case reacquired([CheckInProgress], isLast: Bool)
    /// No answer is under way any more.
    case drained
  }

  enum Ending: Sendable {
    case done, over
    case waits(CheckInProgress, AskingGate.Lane)
  }

  /// The pause between two looks at the queue while all known checks wait.
  private static let lookInterval = Duration.seconds(10)

  let concurrency: Int
  let batchSize: Int
  /// True if no filter narrows the checks.
  let isWhole: Bool
  let isOffline: Bool
  /// The lanes for which another batch may be taken.
  let lanes: [AskingGate.Lane]

  private var budget: ByteBudget
  private var taken: [CheckInProgress] = []
  private var reading: [CheckInProgress] = []
  private var ready: [CheckInProgress] = []
  private var lists = WaitingLists()
  private var inProgress = 0
  private var isDrained = false
  private var hasEnded = false
  private var isAllDone = true
  private var looked: ContinuousClock.Instant
  /// Set while other workers own all due checks. If one dies, this worker takes over its checks.
  private var idle: IdleWait?
  /// The action that the last event demands.
  private var demanded: Action?

  init(
    concurrency: Int, batchSize: Int, isWhole: Bool, isOffline: Bool, lanes: [AskingGate.Lane], memory: Int,
    now: ContinuousClock.Instant
  ) {
    (self.concurrency, self.batchSize, self.isWhole) = (concurrency, batchSize, isWhole)
    (self.isOffline, self.lanes) = (isOffline, lanes)
    budget = ByteBudget(limit: memory)
    looked = now
  }

  // MARK: - Actions

  private var isDone: Bool {
    isDrained && taken.isEmpty && ready.isEmpty && lists.isEmpty && inProgress == 0 && isAllDone && idle == nil
  }

  mutating func next(_ world: Conditions) -> Action {
    if let action = demanded {
      demanded = nil
      return action
    }
    if !hasEnded, !isDone, let reason = world.reasonToEnd {
      let left = taken
      (hasEnded, isDrained, taken) = (true, true, [])
      return .end(reason: reason, left: left, isWaiting: idle != nil)
    }
    // At the end all checks leave the lists, because each one records its failed attempts.
    let places: (AskingGate.Lane) -> Int = hasEnded ? { _ in .max } : world.places
    for check in lists.leave(places) {
      budget.add(check.shop.payloadBytes)
      ready.append(check)
    }
    if ready.isEmpty, taken.isEmpty, !hasEnded {
      let recalled = lists.recall(atMost: batchSize, places)
      if !recalled.isEmpty { return .takeAgain(recalled) }
      if !isDrained, mayTakeBatch(world) { return .take }
    }
    if ready.isEmpty, !taken.isEmpty, budget.hasRoom {
      reading = budget.take(from: &taken)
      if !reading.isEmpty { return .read(reading) }
    }
    if hasEnded || inProgress < concurrency, let check = ready.popLast() {
      inProgress += 1
      return .ask(check)
    }
    if inProgress > 0 || !taken.isEmpty { return .wait }
    if hasEnded { return .finish(isContinuedByOthers: false) }
    if lists.isEmpty {
      guard let idle else { return .takeNew }
      return idle.isOver(world.now) ? .look : .wait
    }
    guard looked + Self.lookInterval < world.now, mayTakeBatch(world) else { return .wait }
    looked = world.now
    return .takeNew
  }

  /// True if another batch is worth taking: a lane is open, or no check waits that could probe one.
  private func mayTakeBatch(_ world: Conditions) -> Bool {
    lists.isEmpty || !lists.isFull && lanes.contains { world.places($0) > 0 }
  }

  // MARK: - Events

  mutating func handle(_ event: Event, now: ContinuousClock.Instant) {
    switch event {
    case .took(let checks): (taken, isDrained) = (checks, checks.isEmpty)
    case .tookAgain(let checks): taken = checks
    case .tookNew(let checks):
      if accept(checks) || !lists.isEmpty { return }
      // A worker that has given up on its own checks must not take over other workers' checks.
      demanded = isOffline || !isAllDone ? Action.finish(isContinuedByOthers: false) : .look
    case .read(let checks):
      budget.add(checks.reduce(0) { $0 + $1.shop.payloadBytes } - reading.reduce(0) { $0 + $1.shop.payloadBytes })
      (ready, reading) = (checks.reversed(), [])
    case .ended(let check, let ending):
      inProgress -= 1
      budget.add(-check.shop.payloadBytes)
      switch ending {
      case .done: break
      case .over: isAllDone = false
      case .waits(let check, let lane): lists.add(check, on: lane)
      }
    case .looked(.nothing):
      // Filters are read again, because answers of other workers have made checks due.
      demanded = idle == nil ? Action.finish(isContinuedByOthers: false) : .reacquire(isLast: true)
    case .looked(.free): demanded = .reacquire(isLast: false)
    case .looked(.others): keepWaiting(now)
    case .reacquired(let checks, let isLast):
      if accept(checks) { return }
      // A free check that could not be leased is locked for a moment.
      if isLast { demanded = .finish(isContinuedByOthers: false) } else { keepWaiting(now) }
    case .drained: inProgress = 0
    }
  }

  /// Returns false if there are no checks.
  private mutating func accept(_ checks: [CheckInProgress]) -> Bool {
    if checks.isEmpty { return false }
    (taken, isDrained, idle) = (checks, false, nil)
    return true
  }

  private mutating func keepWaiting(_ now: ContinuousClock.Instant) {
    let isFirst = idle == nil
    let further = idle?.further(now) ?? IdleWait(isWhole: isWhole, now: now)
    idle = further
    if !further.mayKeepWaiting {
      demanded = .finish(isContinuedByOthers: true)
    } else if isFirst {
      demanded = .announceWait
    }
  }
}

/// A limit for the bytes of payloads in memory, both waiting and under way.
struct ByteBudget {
  private static let batchSize = 250

  private let limit: Int
  private var used = 0

  init(limit: Int) { self.limit = limit }

  var hasRoom: Bool { used < limit }

  /// Removes and returns the next checks whose payloads fit. Into empty memory at least one fits.
  mutating func take(from checks: inout [CheckInProgress]) -> [CheckInProgress] {
    var fitting: [CheckInProgress] = []
    for check in checks.prefix(Self.batchSize) {
      guard used == 0 || used + check.shop.payloadBytes <= limit else { break }
      used += check.shop.payloadBytes
      fitting.append(check)
    }
    checks.removeFirst(fitting.count)
    return fitting
  }

  mutating func add(_ bytes: Int) { used += bytes }
}

/// The wait of an idle worker for checks that other workers own, with a look at the queue now and then.
private struct IdleWait {
  /// The most looks of a filtered run, because a person waits for it. A question after a timeout takes less time.
  private static let mostLooksIfFiltered = 60

  private let isWhole: Bool
  private var looks = 1
  private var next: ContinuousClock.Instant

  init(isWhole: Bool, now: ContinuousClock.Instant) {
    self.isWhole = isWhole
    next = now + .seconds(1)
  }

  func isOver(_ now: ContinuousClock.Instant) -> Bool { next <= now }

  var mayKeepWaiting: Bool { isWhole || looks < Self.mostLooksIfFiltered }

  /// The wait after another look in vain. Pauses grow, because each look at a long queue costs the database time.
  func further(_ now: ContinuousClock.Instant) -> IdleWait {
    var wait = self
    wait.looks += 1
    wait.next = now + .seconds(isWhole ? min(wait.looks, 10) : 1)
    return wait
  }
}
