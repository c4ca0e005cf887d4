// swift-tools-version: 6.2
import PackageDescription

// Declared once, shared by every target of ours: a warning is a defect that nobody has read yet.
let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  // Postgres, Reconciliation and Streams are called for every row. The compiler specialises and inlines across modules
  // what is public, and nothing that is declared `package`, even if it is inlinable: hence the access in those three.
  .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

// Optimised in debug builds, too, with all assertions, because tests spend most of their time in these modules.
let optimized = strict + [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

let fuzzedModules: [Target.Dependency] = [
  "AppStore", "Gzip", "NightAudit", "Postgres", "Reconciliation", "Run", "Settings", "Spreadsheet",
  "TestSupport", "TieOut",
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOHTTP1", package: "swift-nio"),
]

let package = Package(
  name: "night-audit",
  products: [
    .executable(name: "night-audit", targets: ["night-audit"]),
    .executable(name: "app-store-simulator", targets: ["app-store-simulator"]),
  ],
  // Exact versions, because Package.resolved is not kept: two newcomers build the same program.
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
    .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
    .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
    .package(url: "https://github.com/apple/swift-configuration", exact: "1.4.0", traits: []),
    .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", exact: "1.35.2"),
    .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1", traits: []),
    .package(url: "https://github.com/hummingbird-project/swift-mustache", exact: "2.1.1"),
    .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
    .package(url: "https://github.com/swift-server/async-http-client", exact: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", exact: "1.0.2", traits: []),
    .package(url: "https://github.com/vapor/jwt-kit", exact: "5.7.1"),
  ],
  targets: [
    .systemLibrary(
      name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .systemLibrary(
      name: "CXLSXWriter", pkgConfig: "xlsxwriter",
      providers: [.apt(["libxlsxwriter-dev"]), .brew(["libxlsxwriter"])]),
    // How workbooks that come back are read: the archive by libxlsxwriter's own ZIP library, the XML by expat.
    .systemLibrary(
      name: "CMiniZip", pkgConfig: "minizip", providers: [.apt(["libminizip-dev"]), .brew(["minizip"])]),
    .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"]), .brew(["expat"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
    .target(name: "CSystemCalls"),
    .target(
      name: "Postgres", dependencies: ["CLibPQ"], swiftSettings: optimized + [.strictMemorySafety()]),
    .target(
      name: "Spreadsheet", dependencies: ["CExpat", "CMiniZip", "CSystemCalls", "CXLSXWriter"],
      swiftSettings: optimized + [.strictMemorySafety()]),
    // Reports come compressed, and are read as streams; the HTTP stack inflates only what it receives.
    .target(name: "Gzip", dependencies: ["CZlib"], swiftSettings: strict + [.strictMemorySafety()]),
    .target(
      name: "Reconciliation", dependencies: [.product(name: "HeapModule", package: "swift-collections")],
      swiftSettings: optimized),
    .target(
      name: "AppStore",
      dependencies: [
        "CSystemCalls", "Gzip", "Reconciliation",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "JWTKit", package: "jwt-kit"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOHTTPCompression", package: "swift-nio-extras"),
        .product(name: "SwiftASN1", package: "swift-asn1"),
        .product(name: "X509", package: "swift-certificates"),
      ], swiftSettings: optimized),
    .target(
      name: "Reporting",
      dependencies: [
        "CSystemCalls", "Reconciliation", "Spreadsheet",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Mustache", package: "swift-mustache"),
      ],
      resources: [
        .embedInCode("Page/report.mustache"), .embedInCode("Page/page.css"), .embedInCode("Page/page.js"),
        .embedInCode("Page/mail.mustache"),
      ], swiftSettings: optimized),
    // The rooms behind the commands, each a target, so that arrows point one way only (Sources/README.md).
    .target(
      name: "Run",
      dependencies: [
        "CSystemCalls", "Postgres", "Reconciliation",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ], swiftSettings: strict),
    .target(
      name: "Settings",
      dependencies: [
        "AppStore", "Postgres", "Reconciliation", "Reporting", "Run",
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Yams", package: "Yams"),
      ], swiftSettings: strict),
    .target(name: "Streams", dependencies: ["CSystemCalls", "Postgres", "Reconciliation"], swiftSettings: optimized),
    .target(
      name: "SalesStore", dependencies: ["Postgres", "Reconciliation", "Run", "Settings", "Streams"],
      resources: [.embedInCode("sales.sql")], swiftSettings: optimized),
    .target(
      name: "AuditStore",
      dependencies: [
        "AppStore", "Postgres", "Reconciliation", "Reporting", "Run", "Settings", "Streams",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ],
      resources: [
        .embedInCode("Migrations/0001_schema.sql"), .embedInCode("Migrations/rights.sql"),
      ],
      swiftSettings: optimized),
    .target(
      name: "Asking",
      dependencies: [
        "AppStore", "AuditStore", "Postgres", "Reconciliation", "Run", "SalesStore", "Settings", "Streams",
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .target(
      name: "Publishing",
      dependencies: [
        "AppStore", "AuditStore", "CSystemCalls", "Postgres", "Reconciliation", "Reporting", "Run", "Settings",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system"),
      ], swiftSettings: strict),
    .target(
      name: "Auditing",
      dependencies: [
        "AuditStore", "Postgres", "Publishing", "Reconciliation", "Reporting", "Run", "SalesStore", "Settings",
        "Streams",
      ], swiftSettings: optimized),
    .target(
      name: "TieOut",
      dependencies: [
        "AppStore", "AuditStore", "Gzip", "Postgres", "Reconciliation", "Reporting", "Run", "Settings", "Streams",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .target(
      name: "NightAudit",
      dependencies: [
        "AppStore", "Asking", "AuditStore", "Auditing", "CSystemCalls", "Postgres", "Publishing", "Reconciliation",
        "Reporting", "Run", "SalesStore", "Settings", "Spreadsheet", "Streams", "TieOut",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system"),
      ], swiftSettings: strict),
    .executableTarget(
      name: "night-audit",
      dependencies: [
        "Asking", "AuditStore", "Auditing", "NightAudit", "Postgres", "Reconciliation", "Run", "SalesStore", "Settings",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    // Shops with known purchases, as their own tables and as Apple's answers: for the simulator and for tests.
    .target(
      name: "SampleShops", dependencies: ["Reconciliation"], path: "Tests/SampleShops", swiftSettings: strict),
    .executableTarget(
      name: "app-store-simulator",
      dependencies: [
        "Gzip", "Reconciliation", "SampleShops",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "SwiftASN1", package: "swift-asn1"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        .product(name: "X509", package: "swift-certificates"),
      ], path: "Tests/app-store-simulator", swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["Postgres"], path: "Tests/TestSupport", exclude: ["read_workbook.py"],
      swiftSettings: strict),
    .target(
      name: "ShopDatabases", dependencies: ["AuditStore", "Postgres", "SalesStore", "TestSupport"],
      path: "Tests/ShopDatabases", swiftSettings: strict),
    .testTarget(name: "PostgresTests", dependencies: ["Postgres", "TestSupport"], swiftSettings: strict),
    .testTarget(name: "SpreadsheetTests", dependencies: ["Spreadsheet", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "TieOutTests",
      dependencies: [
        "AppStore", "AuditStore", "Gzip", "Postgres", "Reconciliation", "Reporting", "Settings", "ShopDatabases",
        "TestSupport", "TieOut",
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .target(
      name: "SampleWorlds", dependencies: ["Reconciliation", "SampleShops", "TestSupport"],
      path: "Tests/ReconciliationTests/Support", swiftSettings: strict),
    .testTarget(
      name: "ReconciliationTests", dependencies: ["Reconciliation", "SampleWorlds", "TestSupport"],
      exclude: ["Support"], swiftSettings: strict),
    .testTarget(
      name: "AppStoreTests",
      dependencies: [
        "AppStore", "Gzip", "Reconciliation", "TestSupport", "TieOut", "app-store-simulator",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "SwiftASN1", package: "swift-asn1"),
        .product(name: "X509", package: "swift-certificates"),
      ],
      exclude: [
        "RealParts/apple_library.py", "RealParts/second_judge.py", "SignedData/Fixtures/rsa-keys.txt",
      ], swiftSettings: strict),
    .testTarget(
      name: "FuzzTests", dependencies: fuzzedModules, path: "Tests/Fuzz", exclude: ["Corpus", "Program", "README.md"],
      swiftSettings: strict),
    .testTarget(
      name: "ReportingTests", dependencies: ["Reporting", "Reconciliation", "Spreadsheet", "TestSupport"],
      swiftSettings: strict),
    .testTarget(name: "RunTests", dependencies: ["Postgres", "Reconciliation", "Run"], swiftSettings: strict),
    .testTarget(
      name: "SettingsTests",
      dependencies: ["Postgres", "Reconciliation", "Reporting", "Run", "Settings", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "SalesStoreTests",
      dependencies: ["Postgres", "Reconciliation", "Run", "SalesStore", "Settings", "Streams", "TestSupport"],
      swiftSettings: strict),
    .testTarget(name: "StreamsTests", dependencies: ["Streams", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "AskingTests",
      dependencies: [
        "AppStore", "Asking", "AuditStore", "Postgres", "Reconciliation", "Run", "SalesStore", "Settings",
        "ShopDatabases",
        "TestSupport",
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .testTarget(
      name: "PublishingTests",
      dependencies: [
        "AppStore", "AuditStore", "Publishing", "Reconciliation", "Reporting", "Run", "Settings", "TestSupport",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "AuditingTests",
      dependencies: [
        "AppStore", "Asking", "AuditStore", "Auditing", "NightAudit", "Postgres", "Publishing", "Reconciliation",
        "Reporting", "Run", "SalesStore", "SampleWorlds", "Settings", "ShopDatabases", "Streams", "TestSupport",
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .testTarget(
      name: "NightAuditTests",
      dependencies: [
        "NightAudit", "AppStore", "Auditing", "AuditStore", "Postgres", "Publishing", "Reconciliation", "Reporting",
        "Run", "SalesStore", "Settings", "ShopDatabases", "Spreadsheet", "TestSupport", "TieOut",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
      ], swiftSettings: strict),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "AppStore", "Asking", "AuditStore", "Auditing", "NightAudit", "Reconciliation", "Reporting", "SampleWorlds",
        "Settings",
        "TestSupport", "Postgres", "night-audit", "app-store-simulator",
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ], exclude: ["Expected", "Programs"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)

// Programs for those who work on this one, which nobody else should wait for. The fuzzer and its test share their files, and a
// file belongs to one target. With DEVELOPER_TOOLS=libfuzzer LLVM's libFuzzer brings its own main function.
if let tools = Context.environment["DEVELOPER_TOOLS"] {
  package.targets.removeAll { $0.name == "FuzzTests" }
  package.targets += [
    .executableTarget(
      name: "matching-benchmark", dependencies: ["Reconciliation"], path: "Tests/Benchmarks/Matching",
      swiftSettings: strict),
    .executableTarget(
      name: "signature-benchmark",
      dependencies: [
        "AppStore", "Reconciliation",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "SwiftASN1", package: "swift-asn1"),
        .product(name: "X509", package: "swift-certificates"),
      ], path: "Tests/Benchmarks/Signatures", swiftSettings: strict),
    .executableTarget(
      name: "fuzz",
      dependencies: fuzzedModules + [.product(name: "ArgumentParser", package: "swift-argument-parser")],
      path: "Tests/Fuzz", exclude: ["Corpus", "FuzzTests.swift", "README.md"],
      swiftSettings: strict
        + (tools == "libfuzzer" ? [.define("LIBFUZZER"), .unsafeFlags(["-parse-as-library"])] : [])),
  ]
}

// One module with its tests and nothing else, for building it against other releases of a library: ONLY=Spreadsheet.
if Context.environment["ONLY"] == "Spreadsheet" {
  let kept: Set = [
    "CExpat", "CLibPQ", "CMiniZip", "CSystemCalls", "CXLSXWriter", "Postgres", "Spreadsheet", "SpreadsheetTests",
    "TestSupport",
  ]
  package.targets.removeAll { !kept.contains($0.name) }
  package.products.removeAll()
  package.dependencies.removeAll()
}
