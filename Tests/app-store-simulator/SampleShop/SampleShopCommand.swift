import ArgumentParser
import Foundation
import Reconciliation

struct SampleShopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sample-shop",
    abstract: "Write a sample shop: the sales tables as CSV, and Apple's side of it as a world file.",
    discussion: """
      orders.csv, receipts.csv and deliveries.csv fit \\copy ... (FORMAT csv, HEADER) into the sales schema; world.json \
      is for the simulator; shared-secret, AuthKey_SAMPLE.p8 and test-users.txt are for night-audit's configuration; expected.json says what \
      the audit ought to find when it asks through verifyReceipt. The same options write the same bytes.
      """)

  @Option(help: ArgumentHelp("Where to write; made when it is not there.", valueName: "dir"))
  var directory: String

  @Option(help: "How many orders, 500 or more.")
  var orders = 5_000

  @Option(help: "How many full days before the as-of, 56 to 110.")
  var days = 60

  @Option(help: "The seed of all random choices.")
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("The instant of the audit, two hours after midnight UTC or later.", valueName: "time"))
  var asOf = "2026-11-20T03:00:00Z"

  @Flag(
    help: """
      With a second app, which is asked through the App Store Server API with SubscriptionKey_QUIZKEY.p8, and with \
      world-answered.json, in which Apple answers about every receipt.
      """)
  var quiz = false

  func validate() throws {
    guard orders >= SampleShop.fewestOrders else {
      throw ValidationError("--orders must be \(SampleShop.fewestOrders) or more: every scenario needs its share.")
    }
    guard SampleShop.possibleDays.contains(days) else {
      throw ValidationError("--days must be between 56 and 110: subscriptions need time to lapse within the lookback.")
    }
    guard let instant, instant.seconds % 86_400 >= 7_200 else {
      throw ValidationError("--as-of must be a time such as 2026-11-20T03:00:00Z, two hours after midnight or later.")
    }
  }

  func run() throws {
    guard let instant else { throw ValidationError("--as-of is no time.") }
    var shop = SampleShop(orders: orders, seed: seed, timeline: Timeline(asOf: instant, days: days))
    shop.addOddRows()
    if quiz { shop.openQuiz() }
    try SampleShopFiles(shop: shop, seed: seed).write(to: URL(fileURLWithPath: directory, isDirectory: true))
  }

  private var instant: Instant? {
    (try? Date(asOf, strategy: .iso8601)).map { Instant(milliseconds: Int64($0.timeIntervalSince1970 * 1_000)) }
  }
}
