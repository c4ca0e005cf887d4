/// A formula, written as an interpolated literal: `"SUM(\(range))"`.
///
/// Text cannot be interpolated, so that no formula is ever made from data: only positions and whole numbers can.
package struct Formula: Hashable, Sendable, ExpressibleByStringInterpolation {
  /// Without the leading equals sign, in English with commas, as the file stores it.
  package let text: String

  /// A formula that is the same every time.
  package init(stringLiteral value: StaticString) {
    text = value.description
  }

  /// A formula with positions or whole numbers in it.
  package init(stringInterpolation: Interpolation) {
    text = stringInterpolation.text
  }

  /// The formulas added up.
  package static func sum(of formulas: [Formula]) -> Formula {
    Formula(text: formulas.map(\.text).joined(separator: "+"))
  }

  /// A function of these arguments: `COUNTIFS(A1:A9,"open")`.
  package static func call(_ function: StaticString, _ arguments: [Formula]) -> Formula {
    Formula(text: "\(function)(\(Formula.arguments(arguments).text))")
  }

  /// The texts of the formulas, one behind the other.
  package static func joined(_ formulas: [Formula]) -> Formula {
    Formula(text: formulas.map(\.text).joined(separator: "&"))
  }

  /// The formulas as further arguments of a function.
  package static func arguments(_ formulas: [Formula]) -> Formula {
    Formula(text: formulas.map(\.text).joined(separator: ","))
  }

  /// A word of the program's own as text: `"open"`.
  package init(word: StaticString) {
    text = "\"\(word.description.replacing("\"", with: "\"\""))\""
  }

  init(text: String) { self.text = text }

  /// Collects the parts of an interpolated literal.
  package struct Interpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    /// As the compiler asks for it.
    package init(literalCapacity: Int, interpolationCount: Int) {}

    /// The parts that stand in the program's text.
    package mutating func appendLiteral(_ literal: StaticString) { text += literal.description }

    /// A part that is a formula by itself.
    package mutating func appendInterpolation(_ formula: Formula) { text += formula.text }

    /// A whole number.
    package mutating func appendInterpolation(_ number: Int) { text += String(number) }

    /// A cell that moves when the formula is copied: `C12`.
    package mutating func appendInterpolation(_ cell: CellReference) { text += cell.a1 }

    /// A range that moves when the formula is copied: `A1:C12`.
    package mutating func appendInterpolation(_ range: CellRange) { text += range.a1 }

    /// A cell that stays: `$C$12`.
    package mutating func appendInterpolation(absolute cell: CellReference) { text += cell.absolute }

    /// A range that stays: `$A$1:$C$12`.
    package mutating func appendInterpolation(absolute range: CellRange) { text += range.absolute }

    /// A range on another sheet: `'Orders'!$A$1:$C$12`.
    package mutating func appendInterpolation(_ range: SheetRange) {
      text += "\(range.sheet.quoted)!\(range.range.absolute)"
    }
  }
}
