import AuditStore

/// Checks that wait until their lane may be asked again. They take no place, so that other apps are asked meanwhile.
struct WaitingLists {
  /// The most checks that are remembered by their IDs, some 60 bytes each.
  private static let most = 500_000
  /// The checks that are taken again to probe a lane, more than there are probes at a time.
  private static let probes = 4

  /// Checks that Apple was asked about, kept whole. There are no more than were ever under way at a time.
  private var begun: [AskingGate.Lane: [CheckInProgress]] = [:]
  private var remembered: [AskingGate.Lane: [CheckSubject]] = [:]
  private var rememberedCount = 0

  var isEmpty: Bool { begun.isEmpty && remembered.isEmpty }

  var isFull: Bool { rememberedCount >= Self.most }

  /// Keeps a begun check whole, and of any other the ID. Its row stays leased and is read again later.
  mutating func add(_ check: CheckInProgress, on lane: AskingGate.Lane) {
    if check.isBegun { return begun[lane, default: []].append(check) }
    remembered[lane, default: []].append(check.subject)
    rememberedCount += 1
  }

  /// Removes and returns the begun checks that find a place on their lane, the oldest first.
  mutating func leave(_ places: (AskingGate.Lane) -> Int) -> [CheckInProgress] {
    var leaving: [CheckInProgress] = []
    for (lane, waiting) in begun {
      let left = waiting.dropFirst(places(lane))
      leaving += waiting.prefix(waiting.count - left.count)
      begun[lane] = left.isEmpty ? nil : Array(left)
    }
    return leaving
  }

  /// Removes and returns the IDs to ask again: all of an open lane, or a few to probe a lane.
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
