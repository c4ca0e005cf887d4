/// A user of the sample shop.
struct Customer {
  /// What the shop calls the user, as clumsy as real account names are.
  var userId: String
  /// The UUID given to StoreKit.
  var accountToken: String
  var currency: SampleCurrency
  /// On the list `audit.testUsers`.
  var isTester = false
}

/// The users, and what is known of each while the shop is made. Users are told apart by position, because Swift calls two
/// spellings of the same name equal that a database does not.
struct Customers {
  private(set) var all: [Customer] = []
  /// Products that can be bought only once, by position of the user.
  private var owned: [Set<String>]

  static let count = 800
  private static let testerCount = 12

  /// Names that have broken spreadsheets, exports and sort orders before: other scripts, both spellings of an accent,
  /// formulas, quotes and commas.
  private static let names = [
    "李雷", "韩梅梅", "山田太郎", "김민수", "Зоя", "مريم", "יעל", "นภา", "सीता", "Łukasz", "Ægir", "José Núñez",
    "Zo\u{EB}", "Zoe\u{308}", "=cmd()", "+1-555-0100", "-dash", "@home", "O'Brien", "Müller, Hans", "\"Rex\"",
    "👩‍🚀 Ana", "1e5", "007",
  ]

  init(_ random: inout SampleRandom) {
    owned = Array(repeating: [], count: Self.count)
    let shares: [(SampleCurrency, Double)] = [(.usd, 0.4), (.eur, 0.65), (.jpy, 0.82), (.kwd, 0.9), (.cny, 1)]
    let spacing = Self.count / Self.names.count
    for position in 0..<Self.count {
      let draw = random.fraction()
      let isTester = position >= Self.count - Self.testerCount
      let digits = 16 + position % 4
      let userId =
        if isTester {
          position == Self.count - 1 ? "测试-李雷" : "qa-\(position)"
        } else if position.isMultiple(of: spacing), position / spacing < Self.names.count {
          Self.names[position / spacing]
        } else {
          Self.digits(digits, unique: position, &random)
        }
      all.append(
        Customer(
          userId: userId, accountToken: Self.uuid(&random),
          currency: shares.first { draw < $0.1 }?.0 ?? .usd, isTester: isTester))
    }
  }

  var testers: Range<Int> { (Self.count - Self.testerCount)..<Self.count }

  /// A paying user; some buy much more often than others.
  func anyone(_ random: inout SampleRandom) -> Int {
    let draw = random.fraction()
    return Int(draw * draw.squareRoot() * Double(testers.lowerBound))
  }

  /// A user who does not own this product yet, and now does; nil after looking for a while.
  mutating func buyer(of product: SampleProduct, _ random: inout SampleRandom) -> Int? {
    for _ in 0..<200 {
      let user = anyone(&random)
      if product.kind == .consumable || product.kind == .nonRenewing { return user }
      if owned[user].insert(product.productId).inserted { return user }
    }
    return nil
  }

  /// A decimal number of that many digits that no other user has.
  private static func digits(_ count: Int, unique: Int, _ random: inout SampleRandom) -> String {
    let head = random.whole(100_000_000...999_999_999)
    let tail = String(unique)
    return "\(head)" + String(repeating: "0", count: count - 9 - tail.count) + tail
  }

  /// A random UUID (RFC 9562, version 4), in lower case.
  private static func uuid(_ random: inout SampleRandom) -> String {
    var bytes = random.bytes(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let hexadecimal = bytes.map { String($0 >> 4, radix: 16) + String($0 & 0x0F, radix: 16) }
    return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { hexadecimal[$0].joined() }.joined(separator: "-")
  }
}
