/// A country (ISO 3166-1 alpha-2). Apple's Kosovo, which is not in the standard, is XK.
public struct Country: Hashable, Comparable, Sendable {
  /// Two capital letters, the first in the upper byte.
  public let letters: UInt16

  /// Converts the storefront of signed transactions: ISO 3166-1 alpha-3, or Apple's storefront ID. nil: any other text.
  public init?(storefront: String?) {
    guard var storefront else { return nil }
    let letters = storefront.withUTF8 { Country.letters(of: UnsafeRawBufferPointer($0)) }
    guard letters != 0 else { return nil }
    self.letters = letters
  }

  public init?(storefront: BorrowedText?) {
    guard let storefront else { return nil }
    let letters = Country.letters(of: storefront.bytes)
    guard letters != 0 else { return nil }
    self.letters = letters
  }

  public init?(code: String?) {
    guard let bytes = code?.utf8, bytes.count == 2, bytes.allSatisfy({ (0x41...0x5A).contains($0) }) else { return nil }
    letters = bytes.reduce(0) { $0 << 8 | UInt16($1) }
  }

  public var code: String { withUnsafeBytes(of: letters.bigEndian) { String(decoding: $0, as: UTF8.self) } }

  public static func < (left: Country, right: Country) -> Bool { left.letters < right.letters }

  private static func letters(of storefront: UnsafeRawBufferPointer) -> UInt16 {
    if storefront.count == storefrontDigits { return letters(ofStorefrontID: storefront) }
    guard storefront.count == 3, let place = place(of: storefront) else { return 0 }
    return table[place]
  }

  private static let firstStorefrontID = 143_441
  private static let storefrontDigits = 6

  private static func letters(ofStorefrontID digits: UnsafeRawBufferPointer) -> UInt16 {
    guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
    let place = digits.reduce(0) { 10 * $0 + Int($1 & 0x0F) } - firstStorefrontID
    guard storefronts.indices.contains(place) else { return 0 }
    return storefronts[place]
  }

  /// The countries of Apple's storefront IDs, which count up from 143441. Apple publishes no list. These are the IDs on
  /// which public lists agree; `--` is an ID that no two lists have.
  private static let storefronts: [UInt16] = {
    """
    US FR DE GB AT BE FI GR IE IT LU NL PT ES CA SE NO DK CH AU NZ JP HK SG CN KR IN MX RU TW VN ZA MY PH TH ID PK PL \
    SA TR AE HU CL -- PA LK RO -- CZ -- IL -- KW HR CR SK LB QA SI -- CO VE BR GT AR SV PE
    """.split(separator: " ").map { Country(code: String($0))?.letters ?? 0 }
  }()

  private static func place(of letters: UnsafeRawBufferPointer) -> Int? {
    var place = 0
    for letter in letters {
      let capital = letter & 0xDF
      guard (0x41...0x5A).contains(capital) else { return nil }
      place = place * 26 + Int(capital - 0x41)
    }
    return place
  }

  private static let table: [UInt16] = {
    var table = [UInt16](repeating: 0, count: 26 * 26 * 26)
    for entry in listing.split(separator: " ") {
      let bytes = Array(entry.utf8)
      guard let place = bytes[..<3].withUnsafeBytes({ place(of: $0) }) else { continue }
      table[place] = UInt16(bytes[3]) << 8 | UInt16(bytes[4])
    }
    return table
  }()

  private static let listing = """
    ABWAW AFGAF AGOAO AIAAI ALAAX ALBAL ANDAD AREAE ARGAR ARMAM ASMAS ATAAQ ATFTF ATGAG AUSAU AUTAT AZEAZ BDIBI \
    BELBE BENBJ BESBQ BFABF BGDBD BGRBG BHRBH BHSBS BIHBA BLMBL BLRBY BLZBZ BMUBM BOLBO BRABR BRBBB BRNBN BTNBT \
    BVTBV BWABW CAFCF CANCA CCKCC CHECH CHLCL CHNCN CIVCI CMRCM CODCD COGCG COKCK COLCO COMKM CPVCV CRICR CUBCU \
    CUWCW CXRCX CYMKY CYPCY CZECZ DEUDE DJIDJ DMADM DNKDK DOMDO DZADZ ECUEC EGYEG ERIER ESHEH ESPES ESTEE ETHET \
    FINFI FJIFJ FLKFK FRAFR FROFO FSMFM GABGA GBRGB GEOGE GGYGG GHAGH GIBGI GINGN GLPGP GMBGM GNBGW GNQGQ GRCGR \
    GRDGD GRLGL GTMGT GUFGF GUMGU GUYGY HKGHK HMDHM HNDHN HRVHR HTIHT HUNHU IDNID IMNIM INDIN IOTIO IRLIE IRNIR \
    IRQIQ ISLIS ISRIL ITAIT JAMJM JEYJE JORJO JPNJP KAZKZ KENKE KGZKG KHMKH KIRKI KNAKN KORKR KWTKW LAOLA LBNLB \
    LBRLR LBYLY LCALC LIELI LKALK LSOLS LTULT LUXLU LVALV MACMO MAFMF MARMA MCOMC MDAMD MDGMG MDVMV MEXMX MHLMH \
    MKDMK MLIML MLTMT MMRMM MNEME MNGMN MNPMP MOZMZ MRTMR MSRMS MTQMQ MUSMU MWIMW MYSMY MYTYT NAMNA NCLNC NERNE \
    NFKNF NGANG NICNI NIUNU NLDNL NORNO NPLNP NRUNR NZLNZ OMNOM PAKPK PANPA PCNPN PERPE PHLPH PLWPW PNGPG POLPL \
    PRIPR PRKKP PRTPT PRYPY PSEPS PYFPF QATQA REURE ROURO RUSRU RWARW SAUSA SDNSD SENSN SGPSG SGSGS SHNSH SJMSJ \
    SLBSB SLESL SLVSV SMRSM SOMSO SPMPM SRBRS SSDSS STPST SURSR SVKSK SVNSI SWESE SWZSZ SXMSX SYCSC SYRSY TCATC \
    TCDTD TGOTG THATH TJKTJ TKLTK TKMTM TLSTL TONTO TTOTT TUNTN TURTR TUVTV TWNTW TZATZ UGAUG UKRUA UMIUM URYUY \
    USAUS UZBUZ VATVA VCTVC VENVE VGBVG VIRVI VNMVN VUTVU WLFWF WSMWS XKSXK YEMYE ZAFZA ZMBZM ZWEZW
    """
}
