import Postgres

/// The indexes that the migrations have made. A schema that lost one answers as before, and takes hours for a night.
package struct SchemaIndex: Hashable, Sendable {
  package var name: String
  /// The statement that makes it, without a semicolon.
  package var statement: String

  /// All of them, by what the migrations say, oldest first.
  package static let all = replayed(Migrator.migrations.map(\.sql))

  /// Those that the server does not have, or has half built.
  package static func missing(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [SchemaIndex] {
    let rows = try connection.execute(
      """
      SELECT c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
      WHERE c.relnamespace = 'night_audit'::regnamespace AND i.indisvalid
      """)
    var present: Set<String> = []
    for row in rows { present.insert(try row.text(0)) }
    return all.filter { !present.contains($0.name) }
  }

  /// What is left of the indexes when all scripts have run: those of tables, partitions and columns that went are gone.
  static func replayed(_ scripts: [String]) -> [SchemaIndex] {
    var indexes: [(table: String, index: SchemaIndex)] = []
    for statement in scripts.flatMap(statements) {
      if let match = statement.firstMatch(
        of: /^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?(\w+) ON night_audit\.(\w+)/)
      {
        indexes.append((String(match.2), SchemaIndex(name: String(match.1), statement: statement)))
      } else if statement.hasPrefix("DROP INDEX ") {
        let names = Set(statement.matches(of: /night_audit\.(\w+)/).map { String($0.1) })
        indexes.removeAll { names.contains($0.index.name) }
      } else if let match = statement.firstMatch(of: /^DROP TABLE (?:IF EXISTS )?night_audit\.(\w+)/) {
        indexes.removeAll { $0.table == match.1 }
      } else if let match = statement.firstMatch(of: /^ALTER INDEX night_audit\.(\w+) RENAME TO/) {
        // It goes with a table that becomes a partition, and the new one has its own.
        indexes.removeAll { $0.index.name == match.1 }
      } else if let match = statement.firstMatch(of: /^ALTER TABLE night_audit\.(\w+)/) {
        let columns = statement.matches(of: /DROP COLUMN (\w+)/).map { String($0.1) }
        indexes.removeAll { entry in
          entry.table == match.1 && columns.contains { entry.index.statement.contains(word: $0) }
        }
      }
    }
    return indexes.map(\.index)
  }

  /// A script's statements, each on one line and without remarks.
  private static func statements(_ script: String) -> [String] {
    let lines = script.split(separator: "\n").map { $0.split(separator: "--", omittingEmptySubsequences: false)[0] }
    return lines.joined(separator: " ").split(separator: ";").map {
      $0.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
  }
}

extension String {
  fileprivate func contains(word: String) -> Bool {
    split { !$0.isLetter && !$0.isNumber && $0 != "_" }.contains { $0 == word }
  }
}
