/// How long somebody who has nothing left to ask waits for others who hold what is due, looking at the queue now and then.
struct WaitForOthers {
  /// What is said where the waiting was in vain.
  static let reason = "another process had still to ask about the rest"
  /// A run that was narrowed looks so often at most: somebody waits for it, and what its filters list is read for each look.
  private static let mostOfNarrowed = 8
  private static let longest = Duration.seconds(10)

  private let isWhole: Bool
  private var looks = 1
  private var pause: Duration
  private var next: ContinuousClock.Instant

  /// - Parameter isWhole: whether the run is about everything.
  init(isWhole: Bool) {
    self.isWhole = isWhole
    // The server takes a moment to notice that a worker was killed.
    pause = .milliseconds(isWhole ? 1_000 : 200)
    next = .now + pause
  }

  /// Whether it is time for another look.
  var isOver: Bool { next <= .now }

  var hasPatience: Bool { isWhole || looks < Self.mostOfNarrowed }

  /// After one more look in vain.
  var further: WaitForOthers {
    var wait = self
    wait.looks += 1
    if isWhole { wait.pause = min(pause * 2, Self.longest) }
    wait.next = .now + wait.pause
    return wait
  }
}
