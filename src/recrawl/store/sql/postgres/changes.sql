-- name: changes_after
-- Events between two cursors in their order, of all kinds or some.
SELECT * FROM recrawl.changes WHERE cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor LIMIT $3;

-- name: changes_before
-- The same, the newest first.
SELECT * FROM recrawl.changes WHERE cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor DESC LIMIT $3;

-- name: changes_of_page
-- The same of one page, in their order.
SELECT * FROM recrawl.changes WHERE page_id = $5 AND cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor LIMIT $3;

-- name: changes_of_page_before
-- The same of one page, the newest first.
SELECT * FROM recrawl.changes WHERE page_id = $5 AND cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor DESC LIMIT $3;

-- name: last_cursor
-- How far the log has come.
SELECT last_cursor FROM recrawl.ledger;

-- name: cursor_before
-- Where to read on from to have all that was detected since a time.
SELECT coalesce(
    (SELECT min(cursor) - 1 FROM recrawl.changes WHERE detected_at >= $1), (SELECT last_cursor FROM recrawl.ledger));

-- name: read_sink
-- Where a sink is.
SELECT name, cursor, failures, retry_at, stopped FROM recrawl.sinks WHERE name = $1;

-- name: read_sinks
-- Where all sinks are.
SELECT name, cursor, failures, retry_at, stopped FROM recrawl.sinks ORDER BY name COLLATE "C";

-- name: save_sink
-- Note where a sink is.
INSERT INTO recrawl.sinks (name, cursor, failures, retry_at, stopped) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE
SET cursor = excluded.cursor, failures = excluded.failures, retry_at = excluded.retry_at, stopped = excluded.stopped;

-- name: add_dead_letters
-- Remember what a sink could not take.
INSERT INTO recrawl.dead_letters (sink, cursor, at, reason)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::float8[], $4::text[]);

-- name: dead_letters
-- What a sink could not take, the newest first.
SELECT sink, cursor, at, reason FROM recrawl.dead_letters WHERE sink = $1 ORDER BY number DESC LIMIT $2;

-- name: count_dead_letters
-- How many there are, at most as many as are looked at.
SELECT count(*) FROM (SELECT 1 FROM recrawl.dead_letters WHERE sink = $1 LIMIT $2) AS counted;

-- name: add_signals
-- Count signals: one row for each page and kind, however many come; none for pages that are not tracked.
INSERT INTO recrawl.signals (page_id, kind, count, first_at, last_at)
SELECT w.page_id, $3, w.heard, $4, $4
FROM unnest($1::bigint[], $2::bigint[]) AS w (page_id, heard)
JOIN recrawl.pages AS p ON p.id = w.page_id AND p.state <> 'retired'
ON CONFLICT (page_id, kind) DO UPDATE
SET count = signals.count + excluded.count, first_at = least(signals.first_at, excluded.first_at),
    last_at = greatest(signals.last_at, excluded.last_at);

-- name: pending_signals
-- All that was heard and not answered yet.
SELECT page_id, kind, count, first_at, last_at FROM recrawl.signals ORDER BY page_id, kind;

-- name: pending_signals_of
-- The same of some pages.
SELECT page_id, kind, count, first_at, last_at FROM recrawl.signals WHERE page_id = ANY($1::bigint[])
ORDER BY page_id, kind;

-- name: count_signals
-- How many rows wait.
SELECT count(*) FROM recrawl.signals;

-- name: drop_signals
-- Nobody waits for pages that are retired.
DELETE FROM recrawl.signals WHERE page_id = ANY($1::bigint[]);
