import Reconciliation
import Reporting
import Run
import Streams

/// Rows of a part that wait for the rows of earlier parts.
final class WaitingRows {
  private let orders: SpillFile
  private let receipts: SpillFile
  /// Formats rows for the report's files; nil if they wait as records.
  private var text: RowText?
  private let isText: Bool
  private var record = RecordBytes()

  init(in directory: String, as text: consuming RowText?) throws {
    orders = try SpillFile(directory: directory)
    receipts = try SpillFile(directory: directory)
    isText = text != nil
    self.text = text
  }

  func add(_ line: @autoclosure () -> OrderLine, settled sale: SettledSale? = nil) throws {
    if let sale, let row = text?.row(sale) { return try orders.add(row) }
    let line = line()
    if let row = text?.row(line) { return try orders.add(row) }
    record.clear()
    line.write(to: &record)
    try orders.add(record.content)
  }

  func add(_ receipt: Receipt) throws {
    if let row = text?.row(receipt) { return try receipts.add(row) }
    record.clear()
    receipt.write(to: &record)
    try receipts.add(record.content)
  }

  func add(_ receipt: BorrowedReceipt, _ record: borrowing RecordBytes) throws {
    try receipts.add(text?.row(receipt) ?? record.content)
  }

  func passOrders(made: (UnsafeRawBufferPointer) throws -> Void, _ body: (OrderLine) throws -> Void) throws {
    try pass(orders, made: made) { try body(try OrderLine(from: &$0)) }
  }

  func passReceipts(made: (UnsafeRawBufferPointer) throws -> Void, _ body: (Receipt) throws -> Void) throws {
    try pass(receipts, made: made) { try body(try Receipt(from: &$0)) }
  }

  private func pass(
    _ rows: SpillFile, made: (UnsafeRawBufferPointer) throws -> Void, _ record: (inout RecordReader) throws -> Void
  ) throws {
    try rows.restart()
    while let content = try rows.next() {
      if isText {
        try made(content)
        continue
      }
      var reader = RecordReader(content)
      try record(&reader)
    }
  }

  func write(to writer: inout AuditFrameWriter) throws {
    for (rows, frame) in [(receipts, AuditFrame.receiptLine), (orders, .orderLine)] {
      try rows.restart()
      while let content = try rows.next() {
        var reader = RecordReader(content)
        try writer.write(frame, try reader.id(), [UInt8](content))
      }
    }
  }
}
