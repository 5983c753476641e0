package sessions

const (
	endless   = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
	unlaidOut = "does not have the layout of"
)

// schemas returns cases with altered schemas.
func schemas() []Case {
	return []Case{
		{"catalog-view", "queries of the catalogue: its table of sessions is a view without an end", catalog(
			"ALTER TABLE store RENAME TO stock", "CREATE VIEW store AS "+endless+"SELECT i AS no, 's' || i AS session FROM n"), unlaidOut},
		{"catalog-parents-view", "queries of the catalogue: parents without an end", catalog(
			"DROP TABLE parent", "CREATE VIEW parent AS "+endless+"SELECT 'x' AS child, i AS ordinal, 'y' || i AS parent FROM n"), unlaidOut},
		{"store-view", "queries of a store: its events are a view without an end", store(
			"DROP VIEW events", "DROP VIEW dead_letters", "ALTER TABLE event RENAME TO eventually", "CREATE VIEW event AS "+endless+"SELECT i AS id FROM n"), unlaidOut},
		{"store-state-view", "queries of a store: its metadata is a view without an end", store(
			"DROP TABLE meta", "CREATE VIEW meta AS "+endless+"SELECT 'k' || i AS key, 'v' AS value FROM n"), unlaidOut},
		{"published-view", "other programs: a published view without an end", store(
			"DROP VIEW lineage", "CREATE VIEW lineage AS "+endless+"SELECT i AS session FROM n"), unlaidOut},
		{"search-view", "searching: an index whose runs are a view without an end", search(
			"DROP TABLE run", "CREATE VIEW run AS "+endless+"SELECT i AS first, 1 AS origin, 1 AS seq FROM n"), unlaidOut},
		{"catalog-trigger", "writing: a trigger that names a file outside as left over", catalog(
			"CREATE TRIGGER t AFTER UPDATE ON store BEGIN INSERT INTO leftover VALUES ('../../outside/notes.txt'); END"), unlaidOut},
		{"store-trigger", "writing: a trigger without an end", store(
			"CREATE TRIGGER t AFTER INSERT ON event BEGIN INSERT INTO meta " + endless + "SELECT 'k' || i, 'v' FROM n; END"), unlaidOut},
		{"search-trigger", "searching: a trigger that stops the index", search(
			"CREATE TRIGGER t AFTER UPDATE ON progress BEGIN SELECT RAISE(ABORT, 'no'); END"), unlaidOut},
		{"store-virtual", "the schema: a virtual table", store("CREATE VIRTUAL TABLE v USING fts4 (x)"), unlaidOut},
		{"store-generated", "the schema: a generated column that takes a gigabyte", store(
			"ALTER TABLE head ADD COLUMN big BLOB GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL"), unlaidOut},
		{"catalog-index", "the schema: an index of an expression", catalog("CREATE INDEX i ON store (hex(session))"), unlaidOut},
		{"store-lacks", "the schema: a table is missing", store("DROP TABLE timer"), unlaidOut},
		{"store-long", "the schema: a view of a megabyte", store(
			"CREATE VIEW v AS SELECT 1" + longExpression()), ""},
		{"catalog-version-0", "migrations: a file that says it has no version yet", catalog("PRAGMA user_version = 0"), ""},
		{"catalog-version-negative", "migrations: a version below zero", catalog("PRAGMA user_version = -3"), "version"},
		{"store-version-1", "migrations: a new file that says it is old", store("PRAGMA user_version = 1"), unlaidOut},
		{"store-is-catalogue", "identification: a store that says it is a catalogue", store("PRAGMA application_id = 0x54455243"), "another application"},
		{"store-other-encoding", "text: a schema that was written in Latin 1", store(
			"PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = CAST(x'ff' || sql AS TEXT) WHERE name = 'meta'"), ""},
	}
}

func longExpression() string {
	out := make([]byte, 0, 1<<20)
	for len(out) < 900_000 {
		out = append(out, ", 'a long column of a view without a use, one of many such columns, so that the text is long'"...)
		if len(out) > 150_000 {
			break // SQLite allows no more columns
		}
	}
	return string(out)
}
