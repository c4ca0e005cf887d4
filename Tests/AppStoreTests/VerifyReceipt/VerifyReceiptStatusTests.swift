import AppStore
import Testing

struct VerifyReceiptStatusTests {
  private static let table: [(status: Int, meaning: VerifyReceiptStatus.Class)] = [
    (0, .valid), (21_000, .requestRefused), (21_001, .review), (21_002, .transient), (21_003, .rejected),
    (21_004, .secretRefused), (21_005, .transient), (21_006, .valid), (21_007, .askSandbox), (21_008, .askProduction),
    (21_009, .transient), (21_010, .accountGone), (21_011, .transient), (21_099, .transient),
    (21_200, .transient), (1, .transient), (-1, .transient), (-21_003, .transient), (200, .transient),
    (500, .transient),
    (.max, .transient), (.min, .transient),
  ]

  @Test(arguments: table, [nil, true, false])
  func theRetryableFlagMattersForInternalErrorsOnly(
    row: (status: Int, meaning: VerifyReceiptStatus.Class), isRetryable: Bool?
  ) {
    #expect(VerifyReceiptStatus.classify(row.status, isRetryable: isRetryable) == row.meaning)
  }

  @Test(arguments: 21_100...21_199)
  func internalErrorsObeyTheFlag(status: Int) {
    #expect(VerifyReceiptStatus.classify(status, isRetryable: true) == .transient)
    #expect(VerifyReceiptStatus.classify(status, isRetryable: nil) == .transient)
    #expect(VerifyReceiptStatus.classify(status, isRetryable: false) == .review)
  }
}
