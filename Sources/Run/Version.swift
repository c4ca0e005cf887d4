package enum Version {
  /// The semantic version of this release.
  package static let current = "0.1.0"
}
