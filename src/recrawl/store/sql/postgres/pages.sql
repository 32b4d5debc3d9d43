-- name: name_hosts
-- Give numbers to hosts that have none; no row is taken from those that have.
INSERT INTO recrawl.host_names (name)
SELECT DISTINCT w.name FROM unnest($1::text[]) AS w (name)
WHERE NOT EXISTS (SELECT FROM recrawl.host_names AS h WHERE h.name = w.name);

-- name: add_pages
-- Add pages whose addresses are new, in the order given, so that ids rise in it; and count them.
WITH added AS (
INSERT INTO recrawl.pages (url_key, url, host_no, group_name, importance, objective, min_interval_s, max_interval_s,
    source, added_at, role)
SELECT w.url_key, w.url, h.no, w.group_name, w.importance, w.objective, w.min_interval_s, w.max_interval_s, w.source,
    w.added_at, w.role
FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::float8[], $8::float8[],
    $9::text[], $10::float8[], $11::text[]) WITH ORDINALITY
    AS w (url_key, url, host, group_name, importance, objective, min_interval_s, max_interval_s, source, added_at,
        role, place)
JOIN recrawl.host_names AS h ON h.name = w.host
WHERE NOT EXISTS (SELECT FROM recrawl.pages AS p WHERE p.url_key = w.url_key)
ORDER BY w.place
RETURNING url_key, id, role, state
), counted AS (
    INSERT INTO recrawl.row_counts AS c (name, rows)
    SELECT role || ' ' || state, count(*) FROM added GROUP BY 1
    ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows
)
SELECT url_key, id FROM added;

-- name: take_up_pages
-- Track retired pages again, with the wishes of now; what was learned of them stays. Those that have left by the log are
-- removed until they come, which the log then tells. Those that were only sources and are wanted as pages become pages,
-- in the state that they are in. Both are counted where they are from then on.
WITH before AS (
    SELECT p.role, p.state
    FROM unnest($1::bytea[], $11::text[]) AS w (url_key, role) JOIN recrawl.pages AS p ON p.url_key = w.url_key
    WHERE p.state = 'retired' OR (p.role = 'source' AND w.role = 'page')
), taken AS (
UPDATE recrawl.pages AS p
SET host_no = h.no, group_name = w.group_name, importance = w.importance, objective = w.objective,
    min_interval_s = w.min_interval_s, max_interval_s = w.max_interval_s, source = w.source, added_at = w.added_at,
    role = w.role, state = CASE
        WHEN p.state <> 'retired' THEN p.state
        WHEN (SELECT c.kind FROM recrawl.changes AS c WHERE c.page_id = p.id ORDER BY c.cursor DESC LIMIT 1)
            IN ('removed', 'moved') THEN 'removed'
        ELSE 'active'
    END,
    reason = CASE WHEN p.state = 'retired' THEN '' ELSE p.reason END,
    failures = CASE WHEN p.state = 'retired' THEN 0 ELSE p.failures END,
    missing = CASE WHEN p.state = 'retired' THEN 0 ELSE p.missing END,
    missing_since = CASE WHEN p.state = 'retired' THEN NULL ELSE p.missing_since END,
    crashes = CASE WHEN p.state = 'retired' THEN 0 ELSE p.crashes END,
    not_before = CASE WHEN p.state = 'retired' THEN NULL ELSE p.not_before END
FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::float8[], $8::float8[],
    $9::text[], $10::float8[], $11::text[])
    AS w (url_key, url, host, group_name, importance, objective, min_interval_s, max_interval_s, source, added_at, role)
JOIN recrawl.host_names AS h ON h.name = w.host
WHERE p.url_key = w.url_key AND (p.state = 'retired' OR (p.role = 'source' AND w.role = 'page'))
RETURNING p.url_key, p.id, p.role, p.state
), counted AS (
    INSERT INTO recrawl.row_counts AS c (name, rows)
    SELECT name, sum(moved) FROM (
        SELECT role || ' ' || state AS name, 1 AS moved FROM taken
        UNION ALL SELECT role || ' ' || state, -1 FROM before
    ) AS m GROUP BY name HAVING sum(moved) <> 0
    ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows
)
SELECT url_key, id FROM taken;

-- name: ids_of_keys
-- Pages by the digests of their addresses, whatever their state.
SELECT url_key, id FROM recrawl.pages WHERE url_key = ANY($1::bytea[]);

-- name: edit_pages
-- Change what users decide of pages; NULL leaves a column as it is. Those of another state are counted there.
WITH before AS (
    SELECT role, state FROM recrawl.pages WHERE id = ANY($1::bigint[])
), edited AS (
UPDATE recrawl.pages AS p
SET group_name = coalesce(w.group_name, p.group_name), importance = coalesce(w.importance, p.importance),
    objective = coalesce(w.objective, p.objective), min_interval_s = coalesce(w.min_interval_s, p.min_interval_s),
    max_interval_s = coalesce(w.max_interval_s, p.max_interval_s), state = coalesce(w.state, p.state),
    reason = coalesce(w.reason, p.reason), not_before = coalesce(w.not_before, p.not_before)
FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::text[], $5::float8[], $6::float8[], $7::text[], $8::text[],
    $9::float8[])
    AS w (id, group_name, importance, objective, min_interval_s, max_interval_s, state, reason, not_before)
WHERE p.id = w.id
RETURNING p.id, p.role, p.state
), counted AS (
    INSERT INTO recrawl.row_counts AS c (name, rows)
    SELECT name, sum(moved) FROM (
        SELECT role || ' ' || state AS name, 1 AS moved FROM edited
        UNION ALL SELECT role || ' ' || state, -1 FROM before
    ) AS m GROUP BY name HAVING sum(moved) <> 0
    ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows
)
SELECT id, state FROM edited;

-- name: read_pages
-- Rows of pages, in the order of the ids.
SELECT r.*
FROM unnest($1::bigint[]) WITH ORDINALITY AS w (id, place) JOIN recrawl.page_rows AS r ON r.id = w.id
ORDER BY w.place;

-- name: find_pages
-- Pages by the digests of their addresses: of one role or both, perhaps retired ones too.
SELECT url, id FROM recrawl.pages
WHERE url_key = ANY($1::bytea[]) AND ($2::boolean OR state <> 'retired') AND ($3::text IS NULL OR role = $3);

-- name: page_ids
-- Pages in a state, without those that are only sources.
SELECT id FROM recrawl.pages WHERE state = $1 AND role = 'page' ORDER BY id;

-- name: page_ids_not_active
-- The same of a state that few pages are in.
SELECT id FROM recrawl.pages WHERE state = $1 AND state <> 'active' AND role = 'page' ORDER BY id;

-- name: list_pages
-- A stretch of all pages by id, of one role or both.
SELECT * FROM recrawl.page_rows WHERE id > $1 AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: list_sources
-- The same of those that are only sources, which are few.
SELECT * FROM recrawl.page_rows WHERE role = 'source' AND id > $1 ORDER BY id LIMIT $2;

-- name: list_pages_of_group
-- The same of one group.
SELECT * FROM recrawl.page_rows
WHERE group_name = $4 AND id > $1 AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: list_pages_of_host
-- The same of one host.
SELECT * FROM recrawl.page_rows
WHERE host = $4 AND id > $1 AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: pages_asked_last
-- Pages of one host by when they were asked, the latest first.
SELECT * FROM recrawl.page_rows
WHERE host = $1 AND attempted_at IS NOT NULL ORDER BY attempted_at DESC, id DESC LIMIT $2;

-- name: list_pages_of_both
-- The same of one group of one host.
SELECT * FROM recrawl.page_rows
WHERE group_name = $4 AND host = $5 AND id > $1 AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: pause
-- Hold something back; a second time changes nothing.
INSERT INTO recrawl.pauses (kind, name_key, name, since) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING;

-- name: resume
-- End a pause.
DELETE FROM recrawl.pauses WHERE kind = $1 AND name_key = $2 RETURNING 1;

-- name: paused
-- All that is held back.
SELECT kind, name FROM recrawl.pauses ORDER BY kind, name;
