/// One of people's columns of a finding in three places: the workbook that came back, the database now, and, where it is
/// known, the database when that workbook was written.
public enum PeopleMerge<Value: Hashable & Sendable>: Hashable, Sendable {
  /// The database has it right.
  case keep
  /// The workbook has something newer.
  case take(Value)
  /// It was changed on both sides; only people can settle that.
  case conflict

  /// Decides about one column.
  ///
  /// - Parameters:
  ///   - sheet: what the workbook says.
  ///   - now: what the database says.
  ///   - before: what the workbook said when it was written; nil when nobody knows.
  ///   - isEmpty: whether the workbook's cell says nothing. Without knowing what it said before, nobody can tell a cell
  ///     that was cleared from one that was filled in elsewhere since: it is left alone.
  public init(sheet: Value, now: Value, before: Value?, isEmpty: Bool) {
    if sheet == now {
      self = .keep
    } else if let before {
      if sheet == before {
        self = .keep
      } else {
        self = now == before ? .take(sheet) : .conflict
      }
    } else {
      self = isEmpty ? .keep : .take(sheet)
    }
  }
}
