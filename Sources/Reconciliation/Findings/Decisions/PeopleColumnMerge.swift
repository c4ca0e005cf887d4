/// The merge of one column that people edit in the workbook and in the database.
public enum PeopleColumnMerge<Value: Hashable & Sendable>: Hashable, Sendable {
  case keep
  case take(Value)
  /// Both sides were changed. A person must decide.
  case conflict

  /// Merges one column. `before` is the value when the workbook was written; nil: unknown.
  /// Without it an empty cell is left alone, because the value may have been filled in elsewhere since.
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
