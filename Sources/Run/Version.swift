/// The program's version.
package enum Version {
  /// Semantic version of this release.
  package static let current = "0.1.0"
}
