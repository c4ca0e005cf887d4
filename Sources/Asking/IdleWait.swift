/// The wait of an idle worker for checks that other workers hold, with a look at the queue now and then.
struct IdleWait {
  /// The most looks of a filtered run, because a person waits for it. A question after a timeout takes less time.
  private static let mostLooksIfFiltered = 60

  private let isWhole: Bool
  private var looks = 1
  private var next = ContinuousClock.now + .seconds(1)

  init(isWhole: Bool) { self.isWhole = isWhole }

  var isOver: Bool { next <= .now }

  var mayKeepWaiting: Bool { isWhole || looks < Self.mostLooksIfFiltered }

  /// The wait after another look in vain. Pauses grow, because each look at a long queue costs the database time.
  var further: IdleWait {
    var wait = self
    wait.looks += 1
    wait.next = .now + .seconds(isWhole ? min(wait.looks, 10) : 1)
    return wait
  }
}
