import Foundation
import Spreadsheet
import Testing

@testable import Reporting

/// WCAG 2.2, success criterion 1.4.3: text has a contrast of at least 4.5:1.
@Suite struct ContrastTests {
  private func luminance(_ rgb: UInt32) -> Double {
    func linear(_ shift: UInt32) -> Double {
      let value = Double((rgb >> shift) & 0xFF) / 255
      return value <= 0.040_45 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0)
  }

  private func contrast(_ one: UInt32, _ other: UInt32) -> Double {
    let (light, dark) = (max(luminance(one), luminance(other)), min(luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
  }

  @Test func textOfSheetsIsReadable() {
    let backgrounds: [(text: Colour, on: [Colour])] = [
      (Palette.navy, [Palette.white, Palette.tile, Palette.paleBlue, Palette.entry]),
      (Palette.blue, [Palette.white, Palette.paleBlue]), (Palette.grey, [Palette.white, Palette.tile]),
      (Palette.white, [Palette.navy]), (Palette.red, [Palette.white, Palette.tile, Palette.paleRed]),
      (Palette.orange, [Palette.paleOrange]), (Palette.green, [Palette.tile, Palette.paleGreen]),
    ]
    for (text, colours) in backgrounds {
      for colour in colours {
        #expect(contrast(text.rgb, colour.rgb) >= 4.5, "\(String(text.rgb, radix: 16)) on \(colour)")
      }
    }
  }

  @Test(arguments: [MailBody.NoticeTone.good, .warning, .bad])
  func textOfTheMailIsReadable(_ tone: MailBody.NoticeTone) {
    let body = MailBody(
      title: "t", tone: tone, state: "s", reasons: [],
      sections: [MailBody.Section(title: "s", rows: [("label", "value")])], link: nil, closing: [])
    let styles = body.html.matches(of: /"color:#([0-9A-F]{6})(?:;background:#([0-9A-F]{6}))?/)
    #expect(styles.count == 4)
    for style in styles {
      let (text, ground) = (UInt32(style.1, radix: 16) ?? 0, style.2.flatMap { UInt32($0, radix: 16) } ?? 0xFF_FFFF)
      #expect(contrast(text, ground) >= 4.5, "\(style.0)")
    }
  }
}
