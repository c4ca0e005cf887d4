/// Everything that reads what others wrote. An input for the fuzzer is the letter of a decoder, then what it is to read.
enum FuzzDecoder: Character, CaseIterable {
  case signedTransaction = "t"
  case signedRenewalInfo = "r"
  case signedNotification = "n"
  /// A JWS whose parts are given decoded: header, payload and signature, each ended by a line feed but the last.
  case signedParts = "p"
  /// Payloads as if their signature held.
  case transactionPayload = "T"
  case renewalInfoPayload = "R"
  case notificationPayload = "N"
  /// A PKCS#7 container in DER or BER.
  case appReceipt = "a"
  /// The attributes of an app receipt, as if their signature held.
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
  /// A row as COPY's binary format and Spark's job have it.
  case record = "C"
  /// Reports of App Store Connect, compressed or not.
  case salesReport = "S"
  case financeReport = "F"
  case connectAnswer = "E"
  /// YAML.
  case configuration = "Y"
  /// A workbook that people have edited.
  case workbook = "x"
  /// The name of one of its parts, a line feed, what is in it.
  case workbookPart = "X"

  var letter: UInt8 { rawValue.asciiValue ?? 0 }

  init?(letter: UInt8) { self.init(rawValue: Character(Unicode.Scalar(letter))) }
}
