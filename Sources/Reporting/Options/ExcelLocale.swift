import Foundation

/// `report.excelLocale`: the locale of the readers' Excel, such as `de-DE`.
package struct ExcelLocale: Hashable, Sendable {
  package let name: String
  /// True if Excel separates values by semicolons, because numbers have a decimal comma.
  package let separatesBySemicolon: Bool

  package static let unitedStates = ExcelLocale(name: "en-US", separatesBySemicolon: false)

  private init(name: String, separatesBySemicolon: Bool) {
    (self.name, self.separatesBySemicolon) = (name, separatesBySemicolon)
  }

  /// nil unless the name is a language with an optional region: `de`, `de-DE`, `de_DE` (ISO 639, ISO 3166).
  package init?(_ name: String) {
    guard let match = name.wholeMatch(of: /([a-z]{2,3})([-_][A-Za-z]{4})?([-_]([A-Z]{2}|[0-9]{3}))?/) else {
      return nil
    }
    let language = String(match.1)
    let region = match.4.map(String.init) ?? ""
    guard Locale.LanguageCode(language).isISOLanguage, region.isEmpty || Locale.Region(region).isISORegion else {
      return nil
    }
    self.init(name: name, separatesBySemicolon: ExcelLocale.isComma(language: language, region: region))
  }

  /// True if the decimal mark is a comma (Unicode CLDR, `decimal` of the default numbering system).
  private static func isComma(language: String, region: String) -> Bool {
    if ["CH", "LI"].contains(region), ["de", "it", "gsw", "rm"].contains(language) { return false }
    if language == "es" {
      return !["MX", "US", "419", "PR", "DO", "GT", "HN", "NI", "PA", "PE", "SV", "CU"].contains(region)
    }
    if language == "en" { return ["ZA", "DE", "NL", "AT", "SE", "DK", "FI", "BE", "SI"].contains(region) }
    return commas.contains(language)
  }

  private static let commas: Set<String> = [
    "af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "et", "eu", "fi", "fo", "fr", "gl", "hr", "hu", "hy",
    "id", "is", "it", "ka", "kk", "ky", "lt", "lv", "mk", "nb", "nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sl",
    "sq", "sr", "sv", "tr", "uk", "uz", "vi",
  ]
}
