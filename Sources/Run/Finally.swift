/// Runs `body`, and then `close`, also after an error.
package func finally<Result: Sendable>(
  _ close: () async -> Void, after body: () async throws -> Result
) async throws -> Result {
  do {
    let result = try await body()
    await close()
    return result
  } catch {
    await close()
    throw error
  }
}
