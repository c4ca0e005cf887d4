import AuditStore
import Reconciliation

/// Checks that wait until an app and side may be asked again. They hold no place: others are asked meanwhile, however many of
/// an app that is silent are due before them.
struct WaitingLists {
  /// How many are remembered by their ids at most, some 60 bytes each.
  private static let most = 500_000
  /// How many are taken again to try whether a lane may be asked: more than probes are made at a time.
  private static let probes = 4

  /// What was asked in vain waits with all that is known of it; there are no more than were ever under way at a time.
  private var begun: [AskingGate.Lane: [Inquiry]] = [:]
  private var remembered: [AskingGate.Lane: [CheckSubject]] = [:]
  private var rememberedCount = 0

  var isEmpty: Bool { begun.isEmpty && remembered.isEmpty }

  /// Whether so many wait that no more may be taken from the queue.
  var isFull: Bool { rememberedCount >= Self.most }

  /// Keeps what was begun, and of all others the ids: their rows stay taken, and are read again when their turn comes.
  mutating func add(_ inquiry: Inquiry, on lane: AskingGate.Lane) {
    if inquiry.isBegun { return begun[lane, default: []].append(inquiry) }
    remembered[lane, default: []].append(inquiry.check.due.subject)
    rememberedCount += 1
  }

  /// What was begun and need not wait any longer, who came first first.
  ///
  /// - Parameter places: how many a lane has for them.
  mutating func leave(_ places: (AskingGate.Lane) -> Int) -> [Inquiry] {
    var leaving: [Inquiry] = []
    for (lane, waiting) in begun {
      let left = waiting.dropFirst(places(lane))
      leaving += waiting.prefix(waiting.count - left.count)
      begun[lane] = left.isEmpty ? nil : Array(left)
    }
    return leaving
  }

  /// The ids whose turn it is: all of an open lane, and some of one that may be probed, where nothing that was begun does it.
  mutating func recall(atMost count: Int, _ places: (AskingGate.Lane) -> Int) -> [CheckSubject] {
    var recalled: [CheckSubject] = []
    for (lane, waiting) in remembered {
      let open = places(lane)
      let most = open == .max ? count : open > 0 && begun[lane] == nil ? Self.probes : 0
      let next = waiting.prefix(min(most, count - recalled.count))
      if next.isEmpty { continue }
      remembered[lane]?.removeFirst(next.count)
      if next.count == waiting.count { remembered[lane] = nil }
      rememberedCount -= next.count
      recalled += next
    }
    return recalled
  }
}
