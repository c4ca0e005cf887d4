import Reconciliation
import Testing

/// The country of a storefront.
@Suite struct CountryTests {
  @Test(
    arguments: [
      ("DEU", "DE"), ("deu", "DE"), ("XKS", "XK"), ("143441", "US"), ("143443", "DE"), ("143465", "CN"),
      ("143489", "CZ"), ("143507", "PE"),
    ])
  func aStorefrontIsAnAlpha3CodeOrAnIDOfApple(storefront: String, code: String) {
    #expect(Country(storefront: storefront)?.code == code)
    let text = Array(storefront.utf8)
    text.withUnsafeBytes { #expect(Country(storefront: BorrowedText($0))?.code == code) }
  }

  /// An unknown storefront stays blank.
  @Test(
    arguments: [
      "", "DE", "ZZZ", "1434", "143440", "143488", "143508", "143441-1", "14344A", "-43441", "999999", "000000",
      "1434410",
    ])
  func anUnknownStorefrontHasNoCountry(storefront: String) {
    #expect(Country(storefront: storefront) == nil)
  }
}
