import AuditStore
import Reconciliation
import Streams

/// The result of matching, for an order with contested claims.
struct Matched {
  var orderId: Identifier
  /// Empty for an order that owns a payment.
  var contested: [TransactionRecord]
  var claims: OrderClaims
  var newestProofs: [TransactionKey: CheckSubject] = [:]
}

extension Matched {
  func write(to record: inout RecordBytes) {
    record.put(orderId)
    record.put(contested) { $0.write(to: &$1) }
    claims.write(to: &record)
    record.put(newestProofs.sorted { $0.key < $1.key }) { proof, record in
      proof.key.write(to: &record)
      proof.value.write(to: &record)
    }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      orderId: try record.id(),
      contested: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionRecord(from: &record) },
      claims: try OrderClaims(from: &record))
    for _ in 0..<(try record.int()) {
      newestProofs[try TransactionKey(from: &record)] = try CheckSubject(from: &record)
    }
  }
}
