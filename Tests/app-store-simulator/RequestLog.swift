import Foundation
import Synchronization

/// Counts and logs requests: totals, the latest entries, and a file of JSON lines. Never contains payloads or secrets.
final class RequestLog: Sendable {
  struct Entry: Encodable, Sendable {
    /// When the answer was sent, UTC.
    var time: String
    var path: String
    var subject: String
    var http: Int
    /// Apple's `status`, if the answer had one.
    var status: Int?
    var latencyMilliseconds: Int
  }

  struct Report: Encodable, Sendable {
    var total: Int
    var inFlight: Int
    var peakInFlight: Int
    var byPath: [String: Int]
    var byStatus: [String: Int]
    /// The most requests within any one second, by path.
    var peakPerSecond: [String: Int]
    var last: [Entry]
  }

  private struct Arrivals {
    var recent: [ContinuousClock.Instant] = []
    var first = 0
    var peak = 0

    mutating func note(_ now: ContinuousClock.Instant) {
      recent.append(now)
      while recent[first] <= now - .seconds(1) { first += 1 }
      peak = max(peak, recent.count - first)
      if first > 1_000, first > recent.count / 2 {
        recent.removeFirst(first)
        first = 0
      }
    }
  }

  private struct State {
    var file: FileHandle?
    var total = 0
    var inFlight = 0
    var peakInFlight = 0
    var byPath: [String: Int] = [:]
    var byStatus: [String: Int] = [:]
    var arrivals: [String: Arrivals] = [:]
    var last: [Entry] = []
  }

  private static let kept = 1_000
  private let state: Mutex<State>

  init(path: String?) throws {
    var file: FileHandle?
    if let path {
      if !FileManager.default.fileExists(atPath: path) {
        try Data().write(to: URL(fileURLWithPath: path))
      }
      file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try file?.seekToEnd()
    }
    state = Mutex(State(file: file))
  }

  func arrived(path: String) {
    let now = ContinuousClock.now
    state.withLock { state in
      state.inFlight += 1
      state.peakInFlight = max(state.peakInFlight, state.inFlight)
      state.arrivals[path, default: Arrivals()].note(now)
    }
  }

  func answered(_ entry: Entry) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let line = (try? encoder.encode(entry)).map { $0 + Data("\n".utf8) }
    state.withLock { state in
      state.inFlight -= 1
      state.total += 1
      state.byPath[entry.path, default: 0] += 1
      state.byStatus[entry.status.map(String.init) ?? "HTTP \(entry.http)", default: 0] += 1
      state.last.append(entry)
      if state.last.count >= 2 * Self.kept { state.last.removeFirst(state.last.count - Self.kept) }
      // A full disk must not end the rehearsal; counting continues.
      if let line { try? state.file?.write(contentsOf: line) }
    }
  }

  func report(last: Int) -> Report {
    state.withLock { state in
      Report(
        total: state.total, inFlight: state.inFlight, peakInFlight: state.peakInFlight, byPath: state.byPath,
        byStatus: state.byStatus, peakPerSecond: state.arrivals.mapValues(\.peak),
        last: Array(state.last.suffix(min(max(last, 0), Self.kept))))
    }
  }
}
