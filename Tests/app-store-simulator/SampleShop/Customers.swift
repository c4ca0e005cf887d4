import Reconciliation
import SampleShops

struct Customer {
  /// The shop's user ID, with the difficult characters of real account names.
  var userId: String
  /// The UUID given to StoreKit.
  var accountToken: String
  var currency: String
  var isTester = false
}

/// Users by position, because Swift compares canonically equivalent names as equal.
struct Customers {
  private(set) var all: [Customer] = []
  /// Products that can be bought only once, by position of the user.
  private var owned: [Set<Identifier>]
  /// Users with a scenario. One each, because an open proof keeps all of a user's orders from being called unpaid.
  private var storied: Set<Int> = []

  private static let testerCount = 12

  /// Names that break spreadsheets, exports and sort orders: other scripts, both forms of an accent, formulas,
  /// quotes.
  private static let names = [
    "李雷", "韩梅梅", "山田太郎", "김민수", "Зоя", "مريم", "יעל", "นภา", "सीता", "Łukasz", "Ægir", "José Núñez",
    "Zo\u{EB}", "Zoe\u{308}", "=cmd()", "+1-555-0100", "-dash", "@home", "O'Brien", "Müller, Hans", "\"Rex\"",
    "👩‍🚀 Ana", "1e5", "007",
  ]

  init(count: Int, _ random: inout SampleRandom) {
    owned = Array(repeating: [], count: count)
    let spacing = count / Self.names.count
    for position in 0..<count {
      let isTester = position >= count - Self.testerCount
      let digits = 16 + position % 4
      let userId =
        if isTester {
          position == count - 1 ? "测试-李雷" : "qa-\(position)"
        } else if position.isMultiple(of: spacing), position / spacing < Self.names.count {
          Self.names[position / spacing]
        } else {
          Self.digits(digits, unique: position, &random)
        }
      all.append(
        Customer(
          userId: userId, accountToken: Self.uuid(&random), currency: SampleProduct.currency(&random),
          isTester: isTester))
    }
  }

  var testers: [String] { all.filter(\.isTester).map(\.userId) }

  /// Picks a user of the currency who may buy the product, and records the product as owned. Some users buy much more
  /// often than others.
  mutating func buyer(of ware: SampleProduct, _ currency: String, _ random: inout SampleRandom) -> Int {
    let isKept = ware.type == .nonConsumable || ware.type == .autoRenewable
    for _ in 0..<2_000 {
      let draw = random.fraction()
      let user = Int(draw * draw.squareRoot() * Double(all.count - Self.testerCount))
      guard all[user].currency == currency else { continue }
      if !isKept || owned[user].insert(ware.productId).inserted { return user }
    }
    return someone(currency, &random)
  }

  /// Picks a user of the currency, without a scenario if possible.
  mutating func someone(_ currency: String, isTester: Bool = false, _ random: inout SampleRandom) -> Int {
    let fitting = all.indices.filter { all[$0].isTester == isTester && (isTester || all[$0].currency == currency) }
    let user = random.pick(among: fitting.filter { !storied.contains($0) || isTester }.nonEmpty ?? fitting)
    storied.insert(user)
    owned[user].formUnion(SampleProduct.all.map(\.productId))
    return user
  }

  private static func digits(_ count: Int, unique: Int, _ random: inout SampleRandom) -> String {
    let head = random.number(100_000_000...999_999_999)
    let tail = String(unique)
    return "\(head)" + String(repeating: "0", count: count - 9 - tail.count) + tail
  }

  /// A random UUID (RFC 9562, version 4) in lower case.
  private static func uuid(_ random: inout SampleRandom) -> String {
    var bytes = random.bytes(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let hexadecimal = bytes.map { String($0 >> 4, radix: 16) + String($0 & 0x0F, radix: 16) }
    return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { hexadecimal[$0].joined() }.joined(separator: "-")
  }
}

extension Array {
  fileprivate var nonEmpty: [Element]? { isEmpty ? nil : self }
}
