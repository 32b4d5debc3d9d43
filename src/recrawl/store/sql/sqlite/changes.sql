-- name: change_append
-- An event; without a gap, as rows are never deleted and only one connection writes.
INSERT INTO changes (cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger,
    detail, token)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: changes_after
-- Events between two cursors in their order, of all kinds or some.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor LIMIT ?3;

-- name: changes_before
-- The same, the newest first.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor DESC LIMIT ?3;

-- name: changes_of_page
-- The same of one page, in their order.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE page_id = ?5 AND cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor LIMIT ?3;

-- name: changes_of_page_before
-- The same of one page, the newest first.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE page_id = ?5 AND cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor DESC LIMIT ?3;

-- name: change_last_cursor
-- How far the log goes.
SELECT ifnull(max(cursor), 0) FROM changes;

-- name: change_first_since
-- The first event detected at a time or later; NULL if there is none.
SELECT min(cursor) FROM changes WHERE detected_at >= ?1;

-- name: sink_read
-- Where a sink is.
SELECT name, cursor, failures, retry_at, stopped FROM sinks WHERE name = ?1;

-- name: sinks_all
-- Where all sinks are.
SELECT name, cursor, failures, retry_at, stopped FROM sinks ORDER BY name;

-- name: sink_save
-- Where a sink is from now on.
INSERT INTO sinks (name, cursor, failures, retry_at, stopped) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET cursor = ?2, failures = ?3, retry_at = ?4, stopped = ?5;

-- name: dead_letter_add
-- What a sink could not take.
INSERT INTO dead_letters (sink, cursor, at, reason) VALUES (?1, ?2, ?3, ?4);

-- name: dead_letters_of
-- The newest first.
SELECT sink, cursor, at, reason FROM dead_letters WHERE sink = ?1 ORDER BY number DESC LIMIT ?2;

-- name: dead_letters_counted
-- How many there are, at most as many as are looked at.
SELECT count(*) FROM (SELECT 1 FROM dead_letters WHERE sink = ?1 LIMIT ?2);

-- name: signals_add
-- One row for each page and kind, however many come; none for pages that are not tracked. Pages are never deleted, so
-- the highest id tells which exist, and an index of few rows which are retired: no page is read.
INSERT INTO signals (page_id, kind, count, first_at, last_at)
SELECT heard.value, ?2, 1, ?3, ?3 FROM json_each(?1) AS heard
WHERE heard.value BETWEEN 1 AND (SELECT max(id) FROM pages) AND NOT EXISTS (
    SELECT 1 FROM pages AS gone INDEXED BY pages_by_state
    WHERE gone.state <> 'active' AND gone.state = 'retired' AND gone.id = heard.value)
ON CONFLICT (page_id, kind) DO UPDATE SET count = count + 1, first_at = min(first_at, ?3), last_at = max(last_at, ?3);

-- name: signals_all
-- What waits for a fetch.
SELECT page_id, kind, count, first_at, last_at FROM signals ORDER BY page_id, kind;

-- name: signals_of
-- The same of some pages.
SELECT page_id, kind, count, first_at, last_at FROM signals
WHERE page_id IN (SELECT value FROM json_each(?1)) ORDER BY page_id, kind;

-- name: signals_count
-- How many rows wait.
SELECT count(*) FROM signals;
