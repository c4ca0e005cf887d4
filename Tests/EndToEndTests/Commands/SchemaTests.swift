import Auditing
import Foundation
import Reconciliation
import Settings
@_spi(Reflection) import Swift
import TestSupport
import Testing

@testable import NightAudit
@testable import night_audit

/// The published JSON Schemas of `--json`. A schema has the fields of the document's Swift type; `actions.json` has no
/// such type, and a schema written by hand.
@Suite struct SchemaTests {
  /// `UPDATE_EXPECTATIONS=1 swift test --filter SchemaTests` writes the schemas. Review the difference.
  private static let isUpdating = ProcessInfo.processInfo.environment["UPDATE_EXPECTATIONS"] == "1"

  private static var documents: [(name: String, title: String, types: [Any.Type])] {
    [
      ("config-show", "night-audit config show", [SettingsListing.self]),
      ("doctor", "night-audit doctor", [DoctorCommand.Document.self]),
      ("error", "Any command that has nothing else to print", [MachineError.Document.self]),
      ("explain", "night-audit explain", [Explanation.self, Invoice.self]),
      (
        "findings-change", "night-audit findings acknowledge, assign, remark, close, reopen, due, undo",
        [DecisionText.Document.self]
      ),
      ("findings-import", "night-audit findings import", [ImportText.Document.self]),
      ("findings-list", "night-audit findings list", [ListedFindings.self]),
      ("init", "night-audit init", [Init.Document.self]),
      ("rebuild", "night-audit rebuild", [RebuildRun.Outcome.self]),
      ("recheck", "night-audit recheck", [RecheckDocument.self]),
      ("run", "night-audit run, night-audit reconcile", [NightOutcome.PlacedReport.self]),
      ("runs-diff", "night-audit runs diff", [RunDifference.Document.self]),
      ("runs-forget", "night-audit runs forget", [RunUndo.Outcome.Document.self]),
      ("runs-list", "night-audit runs list", [ListRuns.Document.self]),
      ("status", "night-audit status", [NightStatus.self]),
      ("tie-out", "night-audit tie-out", [TieOutText.Document.self]),
      ("trust", "night-audit trust", [Trust.Document.self]),
      ("verify", "night-audit verify", [RunVerification.Document.self]),
    ]
  }

  @Test func theSchemasHaveTheFieldsOfTheDocuments() throws {
    let folder = Repository.root.appending(path: "Sources/night-audit/Documentation.docc/Schemas")
    for document in Self.documents {
      let alternatives = document.types.map { DocumentSchema(path: document.name).schema(of: $0) }
      var schema = alternatives.count == 1 ? alternatives[0] : ["anyOf": alternatives]
      schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
      schema["title"] = document.title + " --json"
      let text = try JSONSerialization.data(
        withJSONObject: schema, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
      let file = folder.appending(path: document.name + ".json")
      if Self.isUpdating { try (text + Data("\n".utf8)).write(to: file) }
      let isSame = try Data(contentsOf: file) == text + Data("\n".utf8)
      #expect(isSame, "\(file.lastPathComponent) lacks a change of its document; renew it with UPDATE_EXPECTATIONS=1")
    }
    let written = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(Set(written) == Set(Self.documents.map { $0.name + ".json" } + ["actions.json"]))
  }
}

/// The object of `findings list`, which the program prints row by row.
private struct ListedFindings: Encodable {
  let findings: [FindingsJSON.Document]
}

/// A JSON Schema, read from the stored properties of a type whose `Encodable` conformance is synthesized.
private struct DocumentSchema {
  /// Schema and field names, such as `run/period/since`.
  let path: String

  func schema(of type: Any.Type) -> [String: Any] {
    var schema = shape(of: type)
    if let note = Self.notes[path] { schema.merge(note) { $1 } }
    return schema
  }

  private func shape(of type: Any.Type) -> [String: Any] {
    switch type {
    case let list as any ListType.Type: ["type": "array", "items": shape(of: list.element)]
    case let map as any MapType.Type: ["type": "object", "additionalProperties": shape(of: map.value)]
    case is Bool.Type: ["type": "boolean"]
    case is any FixedWidthInteger.Type: ["type": "integer"]
    case is Double.Type, is Decimal.Type: ["type": "number"]
    case is Instant.Type: Self.instant
    case is String.Type, is Identifier.Type, is TransactionKey.Type, is any RawRepresentable.Type:
      ["type": "string"].merging(Self.formats[path] ?? format) { $1 }
    default: object(type)
    }
  }

  private func object(_ type: Any.Type) -> [String: Any] {
    var properties: [String: Any] = [:]
    var required: [String] = []
    _forEachField(of: type) { name, _, type, _ in
      let name = Self.snakeCase(String(cString: name))
      if Self.flattened.contains("\(path)/\(name)") {
        let inner = object(type)
        properties.merge(inner["properties"] as? [String: Any] ?? [:]) { $1 }
        required += inner["required"] as? [String] ?? []
        return true
      }
      let optional = type as? any OptionalType.Type
      if optional == nil { required.append(name) }
      properties[name] = DocumentSchema(path: "\(path)/\(name)").schema(of: optional?.wrapped ?? type)
      return true
    }
    var schema: [String: Any] = ["type": "object", "properties": properties]
    if !required.isEmpty { schema["required"] = required.sorted() }
    return schema
  }

  /// The format of a text by the name of its field.
  private var format: [String: Any] {
    switch path.split(separator: "/").last ?? "" {
    case "severity": Self.values(Severity.self)
    case "disposition": Self.values(Disposition.self)
    case "as_of", "at", "first_seen", "last_seen": Self.instant
    case "day", "since", "until", "week", "first_day", "last_day", "last_complete_day", "taken_back_day", "due",
      "uncovered":
      ["format": "date", "pattern": #"^\d{4}-\d{2}-\d{2}$"#]
    case "amount", "at_stake", "at_stake_by_kind", "amount_reported", "amount_now", "sales_proceeds", "open_at_end",
      "settled_from_before", "never_collected", "settled", "difference":
      Self.decimal
    case let name where name.hasSuffix("_at"): Self.instant
    default: [:]
    }
  }

  /// Formats of texts whose field has another meaning elsewhere.
  private static var formats: [String: [String: Any]] {
    [
      "explain/order/amount": [:],
      "explain/payment": ["enum": ["paid", "reversed", "unpaid", "unconfirmed"]],
      "findings-list/findings/status": values(FindingStatus.self),
      "run/changes/since": instant,
      // A disposition, or the amount at risk.
      "runs-diff/totals/disposition": [:],
      "runs-diff/totals/from": decimal,
      "runs-diff/totals/to": decimal,
      "status/last_night/state": [
        "enum": ["complete", "incomplete", "held", "publishing", "not_published", "unfinished", "failed"]
      ],
      "tie-out/gross/lines/gross": decimal,
      "trust/certificates/sha256": ["pattern": "^[0-9a-f]{64}$"],
      "trust/certificates/state": ["enum": ["installed", "present"]],
    ]
  }

  /// Documents whose fields are those of the document around them.
  private static let flattened: Set<String> = ["rebuild/derived", "run/document"]

  private static var notes: [String: [String: Any]] {
    [
      "config-show/settings/origin": described("`default`, or the place where the value was set."),
      "doctor/diagnoses/ok": described("False if a night cannot run until the problem is solved."),
      "error/error/status": described("The exit status."),
      "run": described("The content of summary.json, the report's folder, why the night is held, and the deliveries."),
      "run/configuration": described("A hash of the settings that affect the report's content."),
      "run/directory": described("The report's folder; absent if no report was written."),
      "run/dispositions": ["propertyNames": values(Disposition.self)],
      "run/dispositions/amount": described("Amounts in major units with the currency's digits, by currency code."),
      "run/feed_coverage": described("By app, the share of known sales that notifications reported, from 0 to 1."),
      "run/findings/at_stake": described("Amounts in major units with the currency's digits, by currency code."),
      "run/findings/at_stake_by_kind": described("The amounts at risk by kind and currency."),
      "run/findings/severities": described("Open findings by kind and severity."),
      "run/first": described("The five most urgent findings, one line each."),
      "run/not_checked": described("By app, the kinds of findings that its channel or its notifications cannot show."),
      "run/period/ended": described("True if the period had ended at the as-of."),
      "run/period/missing_days": [
        "minimum": 0, "description": "Days of the period that had not ended at the as-of.",
      ],
      "run/settlement": described("Apple's proceeds of the newest fiscal period, by currency."),
      "run/unusual": described("Kinds of findings, and refunds, on a much larger share of orders than before."),
      "status/feed_coverage": described("By app, the share of known sales that notifications reported, from 0 to 1."),
      "status/notifications": described("A sentence about the coverage of each app."),
      "status/taken_back_day": described("The newest day whose report was taken back by `runs forget`."),
      "tie-out/gross/missing": described("Ended months without all daily reports; they are in no sum."),
      "tie-out/gross/running": described("The month that has not ended; its sums cover the reported days alone."),
      "verify/directory": described("The examined report folder; absent if none was examined."),
      "verify/first": described("The first difference; absent if there is none."),
    ]
  }

  private static let instant = [
    "type": "string", "format": "date-time", "pattern": #"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$"#,
  ]
  private static let decimal = ["pattern": #"^-?\d+(\.\d+)?$"#]

  private static func described(_ text: String) -> [String: Any] { ["description": text] }

  private static func values<Word: CaseIterable & RawRepresentable<String>>(_ type: Word.Type) -> [String: Any] {
    ["enum": type.allCases.map(\.rawValue)]
  }

  /// The name as `JSONEncoder.KeyEncodingStrategy.convertToSnakeCase` writes it.
  private static func snakeCase(_ name: String) -> String {
    name.map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }.joined()
  }
}

private protocol OptionalType { static var wrapped: Any.Type { get } }
extension Optional: OptionalType { fileprivate static var wrapped: Any.Type { Wrapped.self } }

private protocol ListType { static var element: Any.Type { get } }
extension Array: ListType { fileprivate static var element: Any.Type { Element.self } }

private protocol MapType { static var value: Any.Type { get } }
extension Dictionary: MapType where Key == String { fileprivate static var value: Any.Type { Value.self } }
