/// A formula, written as a literal: `"SUM(\(range))"`. No text can be interpolated, so that no formula is made from
/// data.
package struct Formula: Hashable, Sendable, ExpressibleByStringInterpolation {
  /// The formula as the file stores it: in English, with commas, without the leading equals sign.
  package let text: String

  package init(stringLiteral value: StaticString) { text = value.description }

  package init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

  package static func sum(of formulas: [Formula]) -> Formula {
    Formula(text: formulas.map(\.text).joined(separator: "+"))
  }

  /// A function call such as `COUNTIFS(A1:A9,"open")`.
  package static func call(_ function: StaticString, _ arguments: [Formula]) -> Formula {
    Formula(text: "\(function)(\(arguments.map(\.text).joined(separator: ",")))")
  }

  package init(word: StaticString) { text = "\"\(word.description.replacing("\"", with: "\"\""))\"" }

  init(text: String) { self.text = text }

  package struct Interpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ literal: StaticString) { text += literal.description }

    package mutating func appendInterpolation(_ formula: Formula) { text += formula.text }

    package mutating func appendInterpolation(_ number: Int) { text += String(number) }

    package mutating func appendInterpolation(_ cell: CellReference) { text += cell.a1 }

    package mutating func appendInterpolation(_ range: CellRange) { text += range.a1 }

    package mutating func appendInterpolation(absolute cell: CellReference) { text += cell.absolute }

    package mutating func appendInterpolation(absolute range: CellRange) { text += range.absolute }

    /// A reference to another sheet: `'Orders'!$A$1:$C$12`.
    package mutating func appendInterpolation(_ range: SheetRange) {
      text += "\(range.sheet.quoted)!\(range.range.absolute)"
    }
  }
}
