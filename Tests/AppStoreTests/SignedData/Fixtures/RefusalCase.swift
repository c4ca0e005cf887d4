import Reconciliation
import Testing

@testable import AppStore

/// A payload with one defect, and the refusal that it must get.
struct RefusalCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let refusal: SignedDataRefusal
  let payload: @Sendable () throws -> String

  init(_ name: String, _ refusal: SignedDataRefusal, _ payload: @escaping @Sendable () throws -> String) {
    (testDescription, self.refusal, self.payload) = (name, refusal, payload)
  }

  /// Signed transactions.
  static let jws = headerCases + chainCases + dateCases + signatureCases + formCases + payloadCases
  /// App receipts.
  static let receipts = receiptForms + receiptChains + receiptContents
}
