import Foundation

enum SimulatedWorld {
  static let game = payload(1)
  static let sandboxGame = payload(2)
  static let accountGone = payload(3)
  static let withSecret = payload(4)
  static let oldConsumable = payload(5)
  static let oldSubscription = payload(6)
  static let forged = payload(99)
  static let many = (100..<160).map(payload)

  /// A payload that begins like a PKCS#7 receipt.
  static func payload(_ number: UInt8) -> String {
    let content: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02, 0xA0, 0x03, 0x02, 0x01]
    return Data([0x30, 0x10] + content + [number]).base64EncodedString()
  }

  static func payload(_ number: Int) -> String { payload(UInt8(number)) }

  static func json(refundDate: String = "null") -> String {
    """
    {"apps":[{"bundleId":"com.example.game","appAppleId":1234567890},
      {"bundleId":"com.example.secret","sharedSecret":"open sesame"}],
    "transactions":[
      {"transactionId":"1","environment":"Production","bundleId":"com.example.game","productId":"gems.100",
       "type":"Consumable","quantity":2,"purchaseDate":1795000000000,"price":990,"currency":"USD",
       "appAccountToken":"7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11","revocationDate":1795100000000,"finished":false},
      {"transactionId":"2","environment":"Production","bundleId":"com.example.game","productId":"gems.500",
       "type":"Consumable","purchaseDate":1795000001000,"finished":true},
      {"transactionId":"3","environment":"Production","bundleId":"com.example.game","productId":"remove.ads",
       "type":"Non-Consumable","purchaseDate":1795000002000,"revocationDate":\(refundDate),"revocationReason":1},
      {"transactionId":"4","environment":"Production","bundleId":"com.example.game","productId":"gold.monthly",
       "type":"Auto-Renewable Subscription","purchaseDate":1790000000000,"expiresDate":1792600000000,
       "isTrialPeriod":true,"webOrderLineItemId":"904","appAccountToken":"7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11"},
      {"transactionId":"5","originalTransactionId":"4","environment":"Production","bundleId":"com.example.game",
       "productId":"gold.monthly","type":"Auto-Renewable Subscription","purchaseDate":1792600000000,
       "originalPurchaseDate":1790000000000,"expiresDate":1795200000000,"webOrderLineItemId":"905"},
      {"transactionId":"1","environment":"Sandbox","bundleId":"com.example.game","productId":"gems.100",
       "type":"Consumable","purchaseDate":1795000000000}],
    "receipts":[
      {"payload":"\(game)","kind":"app","environment":"Production","bundleId":"com.example.game",
       "transactions":["1","2","3","4","unknown"]},
      {"payload":"\(sandboxGame)","kind":"app","environment":"Sandbox","bundleId":"com.example.game",
       "transactions":["1"]},
      {"payload":"\(accountGone)","kind":"app","environment":"Production","bundleId":"com.example.game",
       "transactions":[],"status":21010},
      {"payload":"\(withSecret)","kind":"app","environment":"Production","bundleId":"com.example.secret",
       "transactions":[]},
      {"payload":"\(oldConsumable)","kind":"transaction","environment":"Production","bundleId":"com.example.game",
       "transactions":["1"]},
      \(many.map { manyReceipt($0) }.joined(separator: ",\n  ")),
      {"payload":"\(oldSubscription)","kind":"transaction","environment":"Production","bundleId":"com.example.game",
       "transactions":["4"]}]}
    """
  }

  private static func manyReceipt(_ payload: String) -> String {
    """
    {"payload":"\(payload)","kind":"app","environment":"Production","bundleId":"com.example.game","transactions":["3"]}
    """
  }
}
