import Reconciliation

/// Makes rows of orders and receipts on other threads than the report's, as CSV text. Parts of an audit make rows
/// concurrently; the report appends them in order. A row is valid until the next one is made.
package struct RowText: ~Copyable {
  private var dimensions: ReportDimensions
  private let put: (order: (OrderLine, inout CSVText) -> Void, receipt: (Receipt, inout CSVText) -> Void)
  private var text = CSVText(capacity: 1 << 10)

  init(dimensions: ReportDimensions) {
    self.dimensions = dimensions
    put = (CSVTable<OrderLine>.putting, CSVTable<Receipt>.putting)
  }

  package mutating func row(_ line: OrderLine) -> UnsafeRawBufferPointer {
    var line = line
    line.place(in: &dimensions)
    return row { [put] in put.order(line, &$0) }
  }

  package mutating func row(_ sale: SettledSale) -> UnsafeRawBufferPointer {
    text.removeAll()
    text.put(sale, app: dimensions.app(sale.order.bundleId), day: dimensions.businessDay(of: sale.order.createdAt))
    text.endRow()
    return text.bytesInPlace
  }

  package mutating func row(_ receipt: Receipt) -> UnsafeRawBufferPointer {
    row { [put] in put.receipt(receipt, &$0) }
  }

  package mutating func row(_ receipt: BorrowedReceipt) -> UnsafeRawBufferPointer { row { $0.put(receipt) } }

  private mutating func row(_ put: (inout CSVText) -> Void) -> UnsafeRawBufferPointer {
    text.removeAll()
    put(&text)
    text.endRow()
    return text.bytesInPlace
  }
}
