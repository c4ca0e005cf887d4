/// The decoders of external input. A fuzzer input is the letter of a decoder followed by its data.
enum FuzzDecoder: Character, CaseIterable {
  case signedTransaction = "t"
  case signedRenewalInfo = "r"
  case signedNotification = "n"
  /// A JWS in decoded parts: header, payload and signature, separated by line feeds.
  case signedParts = "p"
  // Payloads that are decoded without a signature.
  case transactionPayload = "T"
  case renewalInfoPayload = "R"
  case notificationPayload = "N"
  case appReceipt = "a"
  /// The attributes of an app receipt, decoded without a signature.
  case appReceiptContent = "A"
  case oldReceipt = "o"
  /// The inner list of an old receipt.
  case oldPurchaseInfo = "O"
  case verifyReceiptAnswer = "v"
  case transactionAnswer = "i"
  case historyAnswer = "h"
  case subscriptionAnswer = "s"
  case notificationAnswer = "m"
  /// The body of an answer that is not HTTP 200.
  case errorAnswer = "e"
  case retryAfter = "y"
  case receiptKind = "k"
  case rootCertificate = "c"
  case dateAndTime = "d"
  case base64 = "b"
  case json = "j"
  /// A row in the binary format of COPY or of the Spark job.
  case record = "C"
  // Reports of App Store Connect, compressed or not.
  case salesReport = "S"
  case financeReport = "F"
  case connectAnswer = "E"
  case configuration = "Y"
  case workbook = "x"
  /// The name of a workbook's part, a line feed, and the content of the part.
  case workbookPart = "X"

  var letter: UInt8 { rawValue.asciiValue ?? 0 }

  init?(letter: UInt8) { self.init(rawValue: Character(Unicode.Scalar(letter))) }
}
