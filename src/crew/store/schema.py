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
    (
        """CREATE TEMP TABLE at_terminals AS SELECT
             id,
             CASE
               WHEN json_extract(value, '$.pane') = '' THEN 'closed'
               WHEN json_extract(value, '$.leaving') <> '' THEN 'leaving'
               WHEN json_extract(value, '$.pane_pid') IS NOT NULL THEN 'open'
               ELSE 'asked'
             END AS state,
             json_object(
               'task', json_extract(value, '$.task'),
               'number', coalesce(json_extract(value, '$.pane_number'), 0),
               'pid', json_extract(value, '$.pane_pid'),
               'started', json_extract(value, '$.pane_started'),
               'leaving', json_extract(value, '$.leaving'),
               'untyped', json(iif(json_extract(value, '$.untyped'), 'true', 'false'))
             ) AS terminal
           FROM rows WHERE kind = 'run'
             AND (json_extract(value, '$.pane') <> ''
               OR json_extract(value, '$.pane_number') > 0)""",
        """INSERT INTO facts (at, kind, subject, "trigger", target, changes, extra)
           SELECT (SELECT max(at) FROM facts), 'terminal', id, 'found', state,
             json_set(terminal, '$.state', state), '{}' FROM at_terminals""",
        """INSERT INTO rows (kind, id, value)
           SELECT 'terminal', id, json_set(terminal, '$.id', id, '$.state', state)
           FROM at_terminals""",
        """INSERT INTO facts (at, kind, subject, "trigger", changes, extra)
           SELECT (SELECT max(at) FROM facts), 'run', id, 'stop_asked', '{"stopping":true}', '{}'
           FROM rows WHERE kind = 'run' AND json_extract(value, '$.pane') = ''
             AND json_extract(value, '$.leaving') <> ''""",
        """UPDATE rows SET value = json_set(value, '$.stopping', json('true'))
           WHERE kind = 'run' AND json_extract(value, '$.pane') = ''
             AND json_extract(value, '$.leaving') <> ''""",
        "DROP TABLE at_terminals",
    ),
)
"""The second one gives terminals rows of their own; before, they were fields of their runs."""
