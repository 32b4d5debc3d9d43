-- The tables of a store. Rows that every fetch writes are small and apart from what is written once or is large.

CREATE TABLE ledger (              -- one row: who owns the store, and how far it has counted
    one              INTEGER PRIMARY KEY CHECK (one = 1),
    store_id         TEXT    NOT NULL,
    generation       INTEGER NOT NULL,  -- rises with every owner
    owner            TEXT    NOT NULL,  -- the process that last opened it as owner, for people
    last_token       INTEGER NOT NULL,
    last_observation INTEGER NOT NULL,
    observations     INTEGER NOT NULL   -- how many are kept
) STRICT;

CREATE TABLE names (               -- hosts, groups, objectives and sources; pages hold their numbers
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE addresses (           -- a row for each page, written once
    id       INTEGER PRIMARY KEY,
    url_hash INTEGER NOT NULL,     -- xxh3 of 64 bits: a fifth of the size of an index of the addresses themselves
    url      TEXT    NOT NULL,
    source   INTEGER NOT NULL,
    added_at REAL    NOT NULL
) STRICT;
CREATE INDEX addresses_by_hash ON addresses (url_hash);

CREATE TABLE pages (               -- a row for each page, written by every fetch: all that a scheduler reads
    id               INTEGER PRIMARY KEY,
    host             INTEGER NOT NULL,
    in_group         INTEGER NOT NULL,
    importance       REAL    NOT NULL,
    objective        INTEGER,
    min_interval_s   REAL    NOT NULL,
    max_interval_s   REAL,
    state            TEXT    NOT NULL DEFAULT 'active',
    reason           TEXT    NOT NULL DEFAULT '',
    attempted_at     REAL,
    fetched_at       REAL,
    changed_at       REAL,
    outcome          TEXT,
    failures         INTEGER NOT NULL DEFAULT 0,
    not_before       REAL,
    missing          INTEGER NOT NULL DEFAULT 0,
    missing_since    REAL,
    crashes          INTEGER NOT NULL DEFAULT 0,
    visits           INTEGER NOT NULL DEFAULT 0,
    changes          INTEGER NOT NULL DEFAULT 0,
    version          INTEGER NOT NULL DEFAULT 0,
    last_token       INTEGER NOT NULL DEFAULT 0,  -- of the last lease that has ended
    settled_token    INTEGER NOT NULL DEFAULT 0,
    last_observation INTEGER NOT NULL DEFAULT 0,  -- the head of the page's chain of observations
    belief           BLOB
) STRICT;
CREATE INDEX pages_by_host ON pages (host);
CREATE INDEX pages_by_state ON pages (state) WHERE state <> 'active';

CREATE TABLE copies (              -- what is remembered of the copy of a page, written when it differs
    id              INTEGER PRIMARY KEY,
    etag            BLOB,
    last_modified   BLOB,
    validated_url   TEXT,
    raw_digest      BLOB,
    text_digest     BLOB,
    links_digest    BLOB,
    metadata_digest BLOB,
    memory          BLOB
) STRICT;

CREATE TABLE leases (
    page_id   INTEGER PRIMARY KEY,  -- at most one lease for a page
    token     INTEGER NOT NULL UNIQUE,
    worker    TEXT    NOT NULL,
    leased_at REAL    NOT NULL,
    until     REAL    NOT NULL
) STRICT;

CREATE TABLE observations (        -- a chain for each page: an index would cost a write in a random place for each row
    number     INTEGER PRIMARY KEY,
    previous   INTEGER NOT NULL,
    page_id    INTEGER NOT NULL,
    token      INTEGER NOT NULL,
    at         REAL    NOT NULL,
    outcome    TEXT    NOT NULL,
    verdict    TEXT,
    trigger    TEXT    NOT NULL,
    status     INTEGER,
    fault      TEXT,
    reason     TEXT    NOT NULL,
    gap_s      REAL,
    requests   INTEGER NOT NULL,
    wire_bytes INTEGER NOT NULL,
    elapsed_s  REAL    NOT NULL,
    worker     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX observations_by_token ON observations (token);  -- a result counts once; tokens come nearly in order

CREATE TABLE versions (
    number      INTEGER PRIMARY KEY,
    page_id     INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    at          REAL    NOT NULL,
    digest      BLOB    NOT NULL,
    body_digest BLOB,
    text        BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX versions_by_page ON versions (page_id, version);
CREATE INDEX versions_by_body ON versions (body_digest) WHERE body_digest IS NOT NULL;

CREATE TABLE changes (             -- never deleted from: the cursor is the row's number
    cursor                 INTEGER PRIMARY KEY,
    kind                   TEXT    NOT NULL,
    detected_at            REAL    NOT NULL,
    url                    TEXT    NOT NULL,
    page_id                INTEGER,
    last_seen_unchanged_at REAL,
    old_digest             BLOB,
    new_digest             BLOB,
    trigger                TEXT    NOT NULL,
    detail                 TEXT    NOT NULL,
    token                  INTEGER NOT NULL
) STRICT;
CREATE INDEX changes_by_page ON changes (page_id) WHERE page_id IS NOT NULL;
CREATE INDEX changes_by_time ON changes (detected_at);

CREATE TABLE hosts (
    name           TEXT PRIMARY KEY,
    min_gap_s      REAL    NOT NULL,
    next_at        REAL,
    blocked_until  REAL,
    failures       INTEGER NOT NULL,
    degraded_since REAL,
    robots_until   REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE host_notes (          -- large and seldom changed, so apart
    name    TEXT PRIMARY KEY,
    robots  BLOB,
    learned BLOB
) STRICT;

CREATE TABLE signals (
    page_id  INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    count    INTEGER NOT NULL,
    first_at REAL    NOT NULL,
    last_at  REAL    NOT NULL,
    PRIMARY KEY (page_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE pauses (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    at   REAL NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE sinks (
    name     TEXT PRIMARY KEY,
    cursor   INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    retry_at REAL,
    stopped  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY,
    sink   TEXT    NOT NULL,
    cursor INTEGER NOT NULL,
    at     REAL    NOT NULL,
    reason TEXT    NOT NULL
) STRICT;
CREATE INDEX dead_letters_by_sink ON dead_letters (sink);

CREATE TABLE orders (              -- AUTOINCREMENT: a number that was answered and forgotten is never another order
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind        TEXT NOT NULL,
    payload     BLOB NOT NULL,
    posted_at   REAL NOT NULL,
    reply       BLOB,
    answered_at REAL
) STRICT;
CREATE INDEX orders_waiting ON orders (id) WHERE answered_at IS NULL;

CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE tallies (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE VIEW page_rows AS           -- the columns of PageRow, in its order
SELECT pages.id, addresses.url, hosts_named.name AS host, groups_named.name AS in_group, pages.importance,
       objectives_named.name AS objective, pages.min_interval_s, pages.max_interval_s, sources_named.name AS source,
       addresses.added_at, pages.state, pages.reason, pages.attempted_at, pages.fetched_at, pages.changed_at,
       pages.outcome, pages.failures, pages.not_before, pages.missing, pages.missing_since, pages.crashes,
       copies.etag, copies.last_modified, copies.validated_url, copies.raw_digest, copies.text_digest,
       copies.links_digest, copies.metadata_digest, copies.memory, pages.belief, pages.visits, pages.changes,
       pages.version, ifnull(leases.token, pages.last_token) AS last_token, pages.settled_token
FROM pages
JOIN addresses ON addresses.id = pages.id
JOIN names AS hosts_named ON hosts_named.id = pages.host
JOIN names AS groups_named ON groups_named.id = pages.in_group
JOIN names AS sources_named ON sources_named.id = addresses.source
LEFT JOIN names AS objectives_named ON objectives_named.id = pages.objective
LEFT JOIN copies ON copies.id = pages.id
LEFT JOIN leases ON leases.page_id = pages.id;
