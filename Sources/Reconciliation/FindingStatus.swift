/// What people have made of a finding. Whether it stands is decided by the facts alone.
///
/// It stays as people set it for as long as the facts stand, and starts over as `open` when a finding that had closed by
/// itself stands again.
public enum FindingStatus: String, Hashable, CaseIterable, Sendable {
  /// Nobody has looked at it yet.
  case open
  /// Somebody knows.
  case acknowledged
  /// People accept it until a day or up to an amount (`Acceptance`), and it comes back after that.
  case accepted
  /// For people it is dealt with. While the facts stand it stays in the reports and counts as open.
  case closed
}
