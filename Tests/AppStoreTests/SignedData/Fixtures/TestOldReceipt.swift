import Foundation

/// An old transaction receipt, the way Apple writes it.
enum TestOldReceipt {
  static let transactionId = "170000029449420"

  static let base64: String = {
    let info = list([
      ("original-purchase-date-ms", "1780272000000"), ("purchase-date-ms", "1780272000000"),
      ("original-transaction-id", transactionId), ("transaction-id", transactionId), ("quantity", "2"),
      ("bvrs", "20120427"), ("product-id", "com.example.game.gems"), ("bid", "com.example.game"),
    ])
    let outer = [
      ("signature", "AgBDb29s/+=="), ("purchase-info", Data(info.utf8).base64EncodedString()), ("pod", "17"),
    ]
    return Data(list(outer).utf8).base64EncodedString()
  }()

  private static func list(_ entries: [(name: String, value: String)]) -> String {
    "{\n" + entries.map { "\t\"\($0.name)\" = \"\($0.value)\";\n" }.joined() + "}"
  }
}
