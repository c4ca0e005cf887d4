import Foundation

/// An old transaction receipt, the way Apple writes it.
enum TestOldReceipt {
  static let transactionId = "170000029449420"

  static let info = list([
    ("original-purchase-date-ms", "1780272000000"), ("purchase-date-ms", "1780272000000"),
    ("original-transaction-id", transactionId), ("transaction-id", transactionId), ("quantity", "2"),
    ("bvrs", "20120427"), ("product-id", "com.example.game.gems"), ("bid", "com.example.game"),
  ])

  /// The outer list around the base64 of an inner one.
  static func text(_ info: String = base64(info)) -> String {
    list([("signature", "AgBDb29s/+=="), ("purchase-info", info), ("pod", "17")])
  }

  static let base64 = base64(text())

  static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  private static func list(_ entries: [(name: String, value: String)]) -> String {
    "{\n" + entries.map { "\t\"\($0.name)\" = \"\($0.value)\";\n" }.joined() + "\t\"signing-status\" = 0;\n}"
  }
}
