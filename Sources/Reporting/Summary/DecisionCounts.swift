/// Counts of findings that people changed since the previous report, by type of change.
package struct DecisionCounts: Hashable, Sendable {
  /// Keys: `acknowledged`, `accepted`, `closed`, `open`, `owner`, `due`, `remark`.
  package var counts: [String: Int] = [:]

  package init(_ counts: [String: Int] = [:]) { self.counts = counts }

  package var words: String {
    let titles = [
      ("acknowledged", "acknowledged"), ("accepted", "accepted"), ("closed", "closed"), ("open", "reopened"),
      ("owner", "assigned"), ("due", "given a due day"), ("remark", "given a remark"),
    ]
    let parts = titles.compactMap { code, title in counts[code].flatMap { $0 > 0 ? "\(grouped($0)) \(title)" : nil } }
    return parts.isEmpty ? "No finding was changed by a person." : parts.joined(separator: " · ")
  }
}
