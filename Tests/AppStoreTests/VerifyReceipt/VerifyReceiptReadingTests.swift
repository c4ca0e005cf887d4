import NIOCore
import NIOHTTP1
import Reconciliation
import TestSupport
import Testing

@testable import AppStore

struct VerifyReceiptReadingTests {
  private static let now = Instant(seconds: 1_795_212_000)
  private static let receipt = #""receipt":{"bundle_id":"com.example.game","in_app":[]}"#

  @Test(
    "An indecisive answer leaves the check unanswered",
    arguments: [
      "empty answer": [""],
      "answer is no JSON object": [
        " ", "<html><body>Sorry</body></html>", #"{"status":0,"receipt":{"in_app":["#, "[0]", "0", "null", #""0""#,
      ],
      "answer without a status": [
        "{}", #"{"status":null}"#, #"{"status":"valid"}"#, #"{"status":{"code":0}}"#, #"{"status":[0]}"#,
        #"{"status":true}"#, #"{"status":0.5}"#, #"{"status":99999999999999999999}"#, #"{"status":99999999999}"#,
        #"{"status":-99999999999}"#, #"{"status":1e300}"#, #"{"status":"0x52"}"#,
      ],
      "status 0 without a receipt": [#"{"status":0}"#, #"{"status":0,"receipt":null}"#, #"{"status":0,"receipt":[]}"#],
      "status 21006 without a receipt": [#"{"status":21006}"#], "status 21002": [#"{"status":"21002"}"#],
      "status 21009": [#"{"status":21009,"exception":"x"}"#], "status 30000": [#"{"status":30000}"#],
      "status 21104": [
        #"{"status":21104,"is-retryable":1}"#, #"{"status":21104,"is_retryable":"1"}"#,
        #"{"status":21104,"is_retryable":null}"#,
      ],
      "status 0 without a list in_app": [
        #"{"status":0,"receipt":{}}"#, #"{"status":"0","receipt":{}}"#, #"{"status":0,"receipt":{"bundle_id":"a"}}"#,
        #"{"status":0,"receipt":{"bundle_id":"a","in_app":null}}"#,
        #"{"status":0,"receipt":{"bundle_id":"a","in_app":{}}}"#,
        #"{"status":0,"receipt":{"bundle_id":"a","in_app":[[]]}}"#,
        #"{"status":0,"receipt":{"bundle_id":"a","in_app":["\ud800"]}}"#,
      ],
      "status 0 without bundle_id": [
        #"{"status":0,"receipt":{"in_app":[]}}"#, #"{"status":0,"receipt":{"bundle_id":7.5,"in_app":[]}}"#,
      ],
      "status 0 whose latest_receipt_info is no list": [
        #"{"status":0,\#(receipt),"latest_receipt_info":"none"}"#,
        #"{"status":0,\#(receipt),"latest_receipt_info":[[]]}"#,
      ],
      "status 0 whose pending_renewal_info is no list": [#"{"status":0,\#(receipt),"pending_renewal_info":7}"#],
      "status 0 of an undocumented environment": [
        #"{"status":0,"environment":"Moon",\#(receipt)}"#,
        #"{"status":0,"receipt":{"receipt_type":"ProductionMoon","bundle_id":"a","in_app":[]}}"#,
        #"{"status":0,"environment":"Moon","receipt":{"receipt_type":"Lunar","bundle_id":"a","in_app":[]}}"#,
      ],
      "status 0 with 2 purchases without transaction_id or product_id": [
        #"{"status":0,"receipt":{"bundle_id":"a","in_app":[{},{"transaction_id":"1","product_id":"\ud800"}]}}"#
      ],
      "status 0 with 1 purchases without transaction_id or product_id": [
        #"{"status":0,"receipt":{"transaction_id":true,"bid":"a"}}"#
      ],
    ])
  func indecisive(detail: String, bodies: [String]) {
    for body in bodies {
      let reading = read(body)
      #expect(reading.step == .finish(.unanswered(Silence(reason: .appleError, detail: detail))), "\(body)")
      #expect(reading.httpStatus == 200)
    }
  }

  @Test(arguments: [
    (#"{"status":21003}"#, ReceiptAnswer.Outcome.rejected), (#"{"status":"21003"}"#, .rejected),
    (#"{"status":21010}"#, .accountGone), (#"{"status":21004}"#, .fault(.sharedSecretRefused)),
    (#"{"status":21000}"#, .fault(.requestRefused(code: 21_000))), (#"{"status":21001}"#, .review(status: 21_001)),
    (#"{"status":21150,"is_retryable":false}"#, .review(status: 21_150)),
    (#"{"status":21150,"is-retryable":0}"#, .review(status: 21_150)),
    (#"{"status":21150,"is_retryable":"false"}"#, .review(status: 21_150)),
  ])
  func statusesHaveTheirOutcome(body: String, outcome: ReceiptAnswer.Outcome) {
    #expect(read(body).step == .finish(outcome))
  }

  @Test("The retryable flag matters for internal errors only")
  func retryableFlag() {
    func step(_ status: Int, _ isRetryable: Bool?) -> VerifyReceiptReading.Step {
      read(#"{"status":\#(status)\#(isRetryable.map { #","is_retryable":\#($0)"# } ?? "")}"#).step
    }
    func silent(_ status: Int) -> VerifyReceiptReading.Step {
      .finish(.unanswered(Silence(reason: .appleError, detail: "status \(status)")))
    }
    for status in [21_002, 21_005, 21_009, 21_011, 21_099, 21_200, 1, -1, -21_003, 200, 500, 77, 2_147_483_647] {
      for flag in [nil, true, false] { #expect(step(status, flag) == silent(status), "\(status)") }
    }
    for status in 21_100...21_199 {
      for flag in [nil, true] { #expect(step(status, flag) == silent(status), "\(status)") }
      #expect(step(status, false) == .finish(.review(status: status)), "\(status)")
    }
    for status in [21_000, 21_001, 21_003, 21_004, 21_010] {
      for flag in [true, false] { #expect(step(status, flag) == step(status, nil), "\(status)") }
    }
  }

  @Test(arguments: [0, 21_006])
  func genuineReceiptsAreRead(status: Int) throws {
    let reading = read(#"{"status":\#(status),\#(Self.receipt)}"#)
    guard case .finish(.verified(let receipt)) = reading.step else {
      Issue.record("\(reading.step)")
      return
    }
    #expect(receipt.status == status && reading.appleStatus == status)
    #expect(receipt.bundleId == "com.example.game" && receipt.facts.isEmpty)
  }

  // MARK: The other environment

  @Test(
    arguments: [
      (21_007, AppleHost.production, true, AppleHost.sandbox), (21_008, .sandbox, true, .production),
      // Only the other environment is asked, and only once.
      (21_007, .production, false, nil), (21_008, .sandbox, false, nil), (21_007, .sandbox, true, nil),
      (21_008, .production, true, nil),
    ] as [(Int, AppleHost, Bool, AppleHost?)])
  func theOtherEnvironmentIsAskedOnce(status: Int, host: AppleHost, maySwitch: Bool, other: AppleHost?) {
    let reading = read(#"{"status":\#(status)}"#, from: host, maySwitch: maySwitch)
    #expect(reading.appleStatus == status)
    switch (reading.step, other) {
    case (.ask(let asked), .some(let expected)): #expect(asked == expected)
    case (.finish(.unanswered(let silence)), .none): #expect(silence.reason == .appleError)
    default: Issue.record("\(reading.step)")
    }
  }

  // MARK: HTTP

  @Test(arguments: [
    (429, Silence.Reason.rateLimited), (500, .appleError), (502, .appleError), (503, .appleError), (504, .appleError),
    (400, .appleError), (401, .appleError), (403, .appleError), (404, .appleError), (413, .appleError),
    (302, .appleError), (204, .appleError), (201, .appleError),
  ])
  func onlyTwoHundredIsRead(status: Int, reason: Silence.Reason) {
    // Even a body with the status of a forgery is ignored then.
    let reading = read(#"{"status":21003}"#, status: status)
    #expect(reading.step == .finish(.unanswered(Silence(reason: reason, detail: "HTTP \(status)"))))
    #expect(reading.httpStatus == status && reading.appleStatus == nil)
  }

  @Test(
    arguments: [(429, "60", 60), (503, "Fri, 20 Nov 2026 22:01:00 GMT", 60), (429, "soon", nil)]
      as [(Int, String, Int64?)])
  func retryAfterIsUnderstood(status: Int, header: String, seconds: Int64?) {
    let silence = Silence(
      reason: status == 429 ? .rateLimited : .appleError, detail: "HTTP \(status)",
      retryAfter: seconds.map { Self.now + .seconds($0) })
    #expect(read("", status: status, headers: ["Retry-After": header]).step == .finish(.unanswered(silence)))
  }

  @Test func failuresOfTheExchangeHaveTheirReasons() {
    for failure in [Silence.unreachable("x"), .appleError("x")] {
      let reading = VerifyReceiptReading.read(
        .failure(failure), from: .production, maySwitch: true, receivedAt: Self.now)
      #expect(reading.step == .finish(.unanswered(failure)))
      #expect(reading.httpStatus == nil)
    }
  }

  @Test func announcedEndsAreWarnings() {
    let reading = read(
      #"{"status":21003}"#,
      headers: ["Sunset": "Sat, 01 May 2027 00:00:00 GMT", "Deprecation": "@1793000000\u{7}", "X-Other": "x"])
    #expect(
      reading.warnings == [
        "verifyReceipt (production) announces Sunset: Sat, 01 May 2027 00:00:00 GMT",
        "verifyReceipt (production) announces Deprecation: @1793000000",
      ])
  }

  // MARK: Hostile bodies

  @Test func everyPrefixOfAnAnswerIsNoAnswer() {
    let body = Array(VerifiedReceiptTests.unified.utf8)
    let end = body.lastIndex(of: UInt8(ascii: "}")) ?? 0
    for length in 0..<end {
      let reading = read(body: ByteBuffer(bytes: body.prefix(length)))
      guard case .finish(.unanswered) = reading.step else {
        Issue.record("\(length) bytes: \(reading.step)")
        return
      }
    }
  }

  @Test func noMutationCrashes() {
    let body = Array(VerifiedReceiptTests.unified.utf8)
    var random = SeededGenerator(seed: 20_261_120)
    for _ in 0..<3_000 {
      var mutated = body
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let position = Int.random(in: 0..<mutated.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: mutated[position] = UInt8.random(in: 0...255, using: &random)
        case 1: mutated.remove(at: position)
        case 2: mutated.insert(contentsOf: #"9{["-e.,:]}0"#.utf8.shuffled(using: &random).prefix(2), at: position)
        default: mutated.removeSubrange(position..<min(mutated.count, position + 40))
        }
      }
      // Only a changed status may lead to a verdict on the receipt.
      #expect(read(body: ByteBuffer(bytes: mutated)).step != .finish(.rejected))
    }
  }

  private func read(
    _ text: String = "", body: ByteBuffer? = nil, status: Int = 200, headers: HTTPHeaders = [:],
    from host: AppleHost = .production, maySwitch: Bool = true
  ) -> VerifyReceiptReading {
    let reply = HTTPReply(status: status, headers: headers, body: body ?? ByteBuffer(string: text))
    return VerifyReceiptReading.read(.success(reply), from: host, maySwitch: maySwitch, receivedAt: Self.now)
  }
}
