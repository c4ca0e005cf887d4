/// How long somebody who has nothing left to ask waits for others who hold what is due, looking at the queue now and then.
struct WaitForOthers {
  /// How often a run that was narrowed looks at most: a person waits for it. An answer and its questions after a timeout take
  /// less.
  private static let mostOfNarrowed = 60

  private let isWhole: Bool
  private var looks = 1
  private var next = ContinuousClock.now + .seconds(1)

  /// - Parameter isWhole: whether the run is about everything.
  init(isWhole: Bool) { self.isWhole = isWhole }

  /// Whether it is time for another look.
  var isOver: Bool { next <= .now }

  var hasPatience: Bool { isWhole || looks < Self.mostOfNarrowed }

  /// After one more look in vain. A queue of many due receipts is not to be looked through each second of a night.
  var further: WaitForOthers {
    var wait = self
    wait.looks += 1
    wait.next = .now + .seconds(isWhole ? min(wait.looks, 10) : 1)
    return wait
  }
}
