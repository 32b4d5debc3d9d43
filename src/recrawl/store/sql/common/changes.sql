-- name: change_last_cursor
-- How far the log goes.
SELECT coalesce(max(cursor), 0) FROM changes;

-- name: change_cursor_before
-- Where to read on from to have all that was detected since a time.
SELECT coalesce((SELECT min(cursor) - 1 FROM changes WHERE detected_at >= $1),
    (SELECT coalesce(max(cursor), 0) FROM changes));

-- name: sink_read
-- Where a sink is.
SELECT name, cursor, failures, retry_at, stopped FROM sinks WHERE name = $1;

-- name: sink_save
-- Where a sink is from now on.
INSERT INTO sinks (name, cursor, failures, retry_at, stopped) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE
SET cursor = excluded.cursor, failures = excluded.failures, retry_at = excluded.retry_at, stopped = excluded.stopped;

-- name: sinks_all
-- Where all sinks are.
SELECT name, cursor, failures, retry_at, stopped FROM sinks;

-- name: dead_letters_of
-- What a sink could not take, the newest first.
SELECT sink, cursor, at, reason FROM dead_letters WHERE sink = $1 ORDER BY number DESC LIMIT $2;

-- name: dead_letters_counted
-- How many there are, at most as many as are looked at.
SELECT count(*) FROM (SELECT 1 FROM dead_letters WHERE sink = $1 LIMIT $2) AS counted;

-- name: signals_all
-- What waits for a fetch.
SELECT page_id, kind, count, first_at, last_at FROM signals ORDER BY page_id, kind;

-- name: signals_count
-- How many rows wait.
SELECT count(*) FROM signals;
