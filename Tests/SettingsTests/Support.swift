@testable import Settings

/// The least configuration.
let app = "app: {game: {bundleId: com.example.game}}\n"

func load(_ yaml: String, _ environment: [String: String] = [:]) throws -> Settings {
  try SettingsLoader(
    file: try ConfigurationFile(yaml: yaml, name: "test.yaml"), name: "test.yaml", environment: environment
  ).load()
}
