import AuditStore
import Reconciliation

/// Checks that wait until an app and side may be asked again. They hold no place: others are asked meanwhile, however many of
/// an app that is silent are due before them.
struct WaitingLists {
  /// How many that were not begun wait with all that is known of them, on each lane: more than probes are made at a time.
  private static let ready = 4
  /// How many of all others are remembered by their ids, some 100 bytes each.
  private static let most = 100_000

  private struct List {
    var inquiries: [Inquiry] = []
    var freshCount = 0
    var subjects: [CheckSubject] = []
  }

  private var lists: [AskingGate.Lane: List] = [:]
  private var subjectCount = 0

  /// What becomes of a check that waits.
  enum Place {
    /// It is here.
    case kept
    /// Only its id is: it is taken from the queue again when its turn comes.
    case remembered
  }

  var isEmpty: Bool { lists.isEmpty }

  /// Whether so many wait that no more may be taken from the queue.
  var isFull: Bool { subjectCount >= Self.most }

  mutating func add(_ inquiry: Inquiry, on lane: AskingGate.Lane) -> Place {
    var list = lists[lane] ?? List()
    defer { lists[lane] = list }
    if !inquiry.isBegun {
      guard list.freshCount < Self.ready else {
        list.subjects.append(inquiry.check.due.subject)
        subjectCount += 1
        return .remembered
      }
      list.freshCount += 1
    }
    list.inquiries.append(inquiry)
    return .kept
  }

  /// Those that need not wait any longer, who came first first.
  ///
  /// - Parameter places: how many a lane has for them.
  mutating func leave(_ places: (AskingGate.Lane) -> Int) -> [Inquiry] {
    var leaving: [Inquiry] = []
    for (lane, list) in lists where !list.inquiries.isEmpty { leaving += remove(places(lane), from: lane) }
    return leaving
  }

  /// The ids of those that are to be taken from the queue again.
  ///
  /// - Parameters:
  ///   - isIdle: whether nobody is being asked. Then some are recalled though the lane is shut, where nobody else of it waits:
  ///     else nobody would notice when it opens.
  ///   - isOpen: whether a lane takes all.
  mutating func recall(
    atMost count: Int, isIdle: Bool, where isOpen: (AskingGate.Lane) -> Bool
  ) -> [CheckSubject] {
    var recalled: [CheckSubject] = []
    for (lane, list) in lists where !list.subjects.isEmpty {
      let most = isOpen(lane) ? count : isIdle && list.inquiries.isEmpty ? Self.ready : 0
      let next = list.subjects.prefix(min(most, count - recalled.count))
      if next.isEmpty { continue }
      lists[lane]?.subjects.removeFirst(next.count)
      if next.count == list.subjects.count, list.inquiries.isEmpty { lists[lane] = nil }
      subjectCount -= next.count
      recalled += next
    }
    return recalled
  }

  private mutating func remove(_ count: Int, from lane: AskingGate.Lane) -> ArraySlice<Inquiry> {
    guard var list = lists[lane] else { return [] }
    let leaving = list.inquiries.prefix(count)
    list.inquiries.removeFirst(leaving.count)
    list.freshCount -= leaving.count { !$0.isBegun }
    lists[lane] = list.inquiries.isEmpty && list.subjects.isEmpty ? nil : list
    return leaving
  }
}
