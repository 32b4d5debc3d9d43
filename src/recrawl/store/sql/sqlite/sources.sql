-- name: source_state
-- Whether a page exists, and its state as a source: NULL if it is none.
SELECT pages.id, sources.state FROM pages LEFT JOIN sources ON sources.page_id = pages.id WHERE pages.id = ?1;

-- name: source_renew
-- A retired source is taken up anew: what it has brought stays.
UPDATE sources SET kind = ?2, found_by = ?3, state = 'active', reason = '', added_at = ?4 WHERE page_id = ?1;

-- name: source_save
-- A source whole, but for its memory.
INSERT INTO sources (page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (page_id) DO UPDATE SET kind = ?2, found_by = ?3, state = ?4, reason = ?5, added_at = ?6, polls = ?7,
    found = ?8, signals = ?9, useful_at = ?10;

-- name: source_save_memory
-- What its reader remembers; a row that stays the same is not written.
INSERT INTO source_memories (page_id, memory) VALUES (?1, ?2)
ON CONFLICT (page_id) DO UPDATE SET memory = ?2 WHERE memory <> ?2;

-- name: sources_all
-- What is known of sources.
SELECT page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at FROM sources
ORDER BY page_id;

-- name: source_memory
-- What the reader of one source remembers.
SELECT memory FROM source_memories WHERE page_id = ?1;
