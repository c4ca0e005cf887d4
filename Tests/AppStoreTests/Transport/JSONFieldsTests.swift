import Reconciliation
import Testing

@testable import AppStore

struct JSONFieldsTests {
  @Test(arguments: [
    (#""2000000123456789""#, "2000000123456789"), ("2000000123456789", "2000000123456789"), ("0", "0"),
    ("99999999999999999999", "99999999999999999999"), (#"" x ""#, "x"), ("1.5", nil), ("-1", nil), ("true", nil),
    ("null", nil), (#""""#, nil), (#"" ""#, nil), ("[]", nil), ("{}", nil), (#""a\u0000b""#, nil), (#""a\nb""#, nil),
    (#""é受""#, "é受"), ("\"a\u{9B}b\"", nil), (#""\ud800""#, nil), ("2000000123456789.0", "2000000123456789"),
  ])
  func identifiersAreTextsOrWholeNumbers(json: String, expected: String?) throws {
    #expect(try fields(json).text("a") == expected)
  }

  @Test func longTextsAreNil() throws {
    #expect(try fields("\"\(String(repeating: "x", count: 1_024))\"").text("a") != nil)
    #expect(try fields("\"\(String(repeating: "x", count: 1_025))\"").text("a") == nil)
  }

  @Test(
    arguments: [
      ("21007", 21007), (#""21007""#, 21007), (#"" 21007 ""#, 21007), ("21007.0", 21007), ("-3", -3),
      ("9223372036854775807", .max), ("9223372036854775808", nil), ("1.5", nil), ("1e300", nil), ("true", nil),
      ("-42", -42), (#""+5""#, nil), (#""-""#, nil), (#""1.5""#, nil), (#""x""#, nil), (#""""#, nil), ("null", nil),
      ("[1]", nil), (#"{"b":1}"#, nil),
    ] as [(String, Int64?)])
  func integersAreNumbersOrDigits(json: String, expected: Int64?) throws {
    #expect(try fields(json).integer("a") == expected)
  }

  @Test(
    arguments: [
      ("true", true), ("false", false), ("1", true), ("0", false), (#""true""#, true), (#""false""#, false),
      (#""1""#, true), (#""0""#, false), (#""TRUE""#, true), ("2", nil), (#""maybe""#, nil), ("null", nil), ("[]", nil),
    ] as [(String, Bool?)])
  func flagsAreBooleansOnesOrWords(json: String, expected: Bool?) throws {
    #expect(try fields(json).flag("a") == expected)
  }

  @Test(
    arguments: [
      ("[]", 0), ("{}", 1), (#"[{"b":1},{"b":2}]"#, 2), (#"[1,null,{"b":1},[],"x"]"#, 5), ("null", nil), ("7", nil),
      (#""x""#, nil), ("true", nil),
    ] as [(String, Int?)])
  func aSingleObjectReadsAsAList(json: String, count: Int?) throws {
    #expect(try fields(json).objects("a")?.count == count)
  }

  @Test(arguments: [
    "", " ", "[]", "7", "null", "\"x\"", "{", "}", "{a:1}", "{\"a\"}", "{\"a\":}", "{\"a\":1}}", "{\"a\":1,}",
    "{\"a\":1 \"b\":2}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":-}", "{\"a\":1e}", "{\"a\":+1}",
    "{\"a\":tru}", "{\"a\":nul", "{\"a\":\"\n\"}", "{\"a\":\"", "{\"a\":\"\\", "{\"a\":[1,]}", "{\"a\":[1}",
    "{\"a\":{}", "{}{}", "{} x", "{\"a\":NaN}", "\u{0}", "<html></html>", "{'a':1}", "{\"a\":'b'}",
    String(repeating: "{\"a\":", count: 100_000),
    String(repeating: "{\"a\":", count: 600) + "1" + String(repeating: "}", count: 600),
  ])
  func textThatIsNoObjectIsNil(json: String) {
    #expect(JSONFields(json.utf8) == nil)
  }

  @Test func escapesMissingFieldsAndRepeatedKeysAreRead() throws {
    let text = #"""
      {"t":"a\u00e9\n\/\ud83d\ude00","e":"","n":null,"f":1.5e3,"half":0.5,"o":{"x":[{"y":"z"}]},"a":["p",1,"q"],
      "d":1,"d":2,"bad":"\ud83d","huge":1e400}
      """#
    let json = try #require(JSONFields(Array(text.utf8)))
    #expect(json.document("t") == "aé\n/😀" && json.text("t") == nil, "a line break is in no identifier")
    #expect(json.text("bad") == nil && json.integer("d") == 2)
    #expect(!json.has("n") && !json.has("missing") && !json.has("e") && json.has("t"))
    #expect(json.integer("huge") == nil && json.instant("huge") == nil && json.integer("f") == 1_500)
    #expect(json.integer("half") == nil && json.instant("half") == Instant(microseconds: 500))
    #expect(json.object("o") != nil && json.object("a") == nil)
    #expect(json.texts("a") == ["p", nil, "q"] && json.texts("o") == nil)
  }

  @Test func blanksBetweenTokensAreNoContent() throws {
    let text = "{ \"a b\" : [ 1 ,\n\t2 ] , \"c\" : \" \\\" : \\\\\" , \"d\" : { } }"
    #expect(try fields(text).json("a") == #"{"a b":[1,2],"c":" \" : \\","d":{}}"#)
    #expect(try fields("7").json("a") == nil)
  }

  @Test func invalidUTF8IsNoText() {
    #expect(JSONFields([0x7B, 0x22, 0x61, 0x22, 0x3A, 0x22, 0xFF, 0x22, 0x7D])?.text("a") == nil)
  }

  @Test(
    "Extreme numbers give no wrong value",
    arguments: ["1e999", "-1e999", "1e-999", "9223372036854775808", "-9223372036854775809", "0.1", "NaN", "1e18"])
  func oddNumbers(json: String) throws {
    guard let fields = JSONFields(Array(#"{"a":\#(json)}"#.utf8)) else { return }
    #expect(fields.integer32("a") == nil || fields.integer32("a") == 0)
    #expect(fields.instant("a").map { Instant.appleDates.contains($0) } ?? true)
  }

  @Test func everyTextIsFound() throws {
    let fields = try #require(JSONFields(Array(#"{"a":"1","b":{"c":"2","d":{"e":"3"}},"f":["4"],"g":5}"#.utf8)))
    #expect(fields.everyText(depth: 3) == ["1", "2", "3", "4"])
    #expect(fields.everyText(depth: 1) == ["1", "2", "4"])
    #expect(fields.objectsWithin.map { $0.has("c") } == [true] && fields.listedTexts("f") == ["4"])
    #expect(fields.listedTexts("a") == ["1"] && fields.listedTexts("b").isEmpty)
  }

  @Test func fieldsOfTheUpperLayerTakePrecedence() throws {
    let both = try fields(#"{"lower":{"a":"1","b":"2","c":"3"},"upper":{"a":"9","b":null,"c":"","d":"4"}}"#)
    let lower = try #require(both.object("a")?.object("lower"))
    let upper = try #require(both.object("a")?.object("upper"))
    let merged = lower.overlaid(by: upper)
    #expect(["a", "b", "c", "d"].map { merged.text($0) } == ["9", "2", "3", "4"])
  }

  private func fields(_ value: String) throws -> JSONFields {
    try #require(JSONFields(#"{"a":\#(value)}"#.utf8))
  }
}
