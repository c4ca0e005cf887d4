import Foundation

struct ServerAPIRequest: Sendable {
  enum Endpoint: String, CaseIterable, Sendable {
    case transaction = "/inApps/v1/transactions"
    case history = "/inApps/v2/history"
    case subscriptions = "/inApps/v1/subscriptions"
    case refunds = "/inApps/v2/refund/lookup"
    case notifications = "/inApps/v1/notifications/history"
    case orders = "/inApps/v1/lookup"
  }

  var environment: World.Environment
  var endpoint: Endpoint
  var path: String
  var id: String
  var isPost: Bool
  var revision: String?
  var paginationToken: String?
  var authorization: String?
  var body: Data

  init?(
    path: String, isPost: Bool, query: (String) -> String?, authorization: String?, body: Data
  ) {
    let sides: [(String, World.Environment)] = [("/production", .production), ("/sandbox", .sandbox)]
    guard let (side, environment) = sides.first(where: { path.hasPrefix($0.0 + "/inApps/") }) else { return nil }
    let rest = path.dropFirst(side.count)
    guard let endpoint = Endpoint.allCases.first(where: { rest.hasPrefix($0.rawValue) }) else { return nil }
    let tail = rest.dropFirst(endpoint.rawValue.count)
    guard endpoint == .notifications ? tail.isEmpty : tail.hasPrefix("/") && tail.count > 1 else { return nil }
    self.environment = environment
    self.endpoint = endpoint
    self.path = side + endpoint.rawValue
    id = String(tail.dropFirst())
    self.isPost = isPost
    revision = query("revision")
    paginationToken = query("paginationToken")
    self.authorization = authorization
    self.body = body
  }

  var subject: String { id.isEmpty ? paginationToken ?? "first page" : id + (revision.map { "@\($0)" } ?? "") }
}
