/// The merge of one column that people edit in the workbook and in the database.
public enum PeopleColumnMerge<Value: Hashable & Sendable>: Hashable, Sendable {
  case keep
  case take(Value)
  /// Both sides were changed. A person must decide.
  case conflict

  /// Merges one column. `before` is the value when the workbook was written.
  public init(sheet: Value, now: Value, before: Value) {
    if sheet == now || sheet == before {
      self = .keep
    } else {
      self = now == before ? .take(sheet) : .conflict
    }
  }
}
