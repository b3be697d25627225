"""The schema as a list of migrations. A released migration never changes."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE facts (
             id INTEGER PRIMARY KEY AUTOINCREMENT,
             at REAL NOT NULL,
             kind TEXT NOT NULL,
             subject TEXT NOT NULL,
             "trigger" TEXT NOT NULL,
             source TEXT,
             target TEXT,
             changes TEXT NOT NULL,
             extra TEXT NOT NULL
           )""",
        "CREATE INDEX facts_of_subject ON facts (kind, subject, id)",
        """CREATE TABLE rows (
             kind TEXT NOT NULL,
             id TEXT NOT NULL,
             value TEXT NOT NULL,
             PRIMARY KEY (kind, id)
           ) WITHOUT ROWID""",
        """CREATE TABLE requests (
             id INTEGER PRIMARY KEY AUTOINCREMENT,
             at REAL NOT NULL,
             verb TEXT NOT NULL,
             args TEXT NOT NULL,
             reply TEXT
           )""",
        "CREATE INDEX open_requests ON requests (id) WHERE reply IS NULL",
        "CREATE TABLE doing (agent TEXT PRIMARY KEY, at REAL NOT NULL, words TEXT NOT NULL)",
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE task_index (source TEXT PRIMARY KEY, value BLOB NOT NULL)",
    ),
)
