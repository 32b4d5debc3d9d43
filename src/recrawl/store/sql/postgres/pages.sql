-- name: name_hosts
-- Give numbers to hosts that have none; no row is taken from those that have.
INSERT INTO host_names (name)
SELECT DISTINCT w.name FROM unnest($1::text[]) AS w (name)
WHERE NOT EXISTS (SELECT FROM host_names AS h WHERE h.name = w.name);

-- name: pages_known
-- Pages by the digests of their addresses, whatever their state: whether they are retired, or only sources.
SELECT url, id, state = 'retired', role = 'source' FROM pages WHERE url_key = ANY($1::bytea[]);

-- name: pages_find
-- Pages by the digests of their addresses: of one role or both, perhaps retired ones too.
SELECT url, id FROM pages
WHERE url_key = ANY($1::bytea[]) AND ($2::boolean OR state <> 'retired') AND ($3::text IS NULL OR role = $3);

-- name: address_insert
-- Nothing: a page and its address are one row.
-- skipped

-- name: page_insert
-- New pages.
INSERT INTO pages (id, url_key, url, source, added_at, host_no, group_name, importance, objective, min_interval_s,
    max_interval_s, role)
SELECT w.id, w.url_key, w.url, w.source, w.added_at, h.no, w.group_name, w.importance, w.objective, w.min_interval_s,
    w.max_interval_s, w.role
FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::text[], $8::float8[],
    $9::text[], $10::float8[], $11::float8[], $12::text[])
    AS w (id, url_key, url, source, added_at, host, group_name, importance, objective, min_interval_s, max_interval_s,
        role)
JOIN host_names AS h ON h.name = w.host;

-- name: address_renew
-- Nothing: a page and its address are one row.
-- skipped

-- name: page_renew
-- Track retired pages again, or as pages what was only a source, with the wishes of now; what was learned stays. What
-- stood against a retired page is dropped. One that has left by the log is removed until it comes, which the log tells.
-- All are counted where they are from then on.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::text[],
        $8::float8[], $9::text[], $10::float8[], $11::float8[], $12::text[])
        AS w (id, url_key, url, source, added_at, host, group_name, importance, objective, min_interval_s,
            max_interval_s, role)
), before AS (
    SELECT p.role, p.state FROM wanted AS w JOIN pages AS p ON p.id = w.id
), renewed AS (
UPDATE pages AS p
SET host_no = h.no, group_name = w.group_name, importance = w.importance, objective = w.objective,
    min_interval_s = w.min_interval_s, max_interval_s = w.max_interval_s, source = w.source, added_at = w.added_at,
    role = w.role, state = CASE
        WHEN p.state <> 'retired' THEN p.state
        WHEN (SELECT c.kind FROM changes AS c WHERE c.page_id = p.id ORDER BY c.cursor DESC LIMIT 1)
            IN ('removed', 'moved') THEN 'removed'
        ELSE 'active'
    END,
    reason = CASE WHEN p.state = 'retired' THEN '' ELSE p.reason END,
    failures = CASE WHEN p.state = 'retired' THEN 0 ELSE p.failures END,
    missing = CASE WHEN p.state = 'retired' THEN 0 ELSE p.missing END,
    missing_since = CASE WHEN p.state = 'retired' THEN NULL ELSE p.missing_since END,
    crashes = CASE WHEN p.state = 'retired' THEN 0 ELSE p.crashes END,
    not_before = CASE WHEN p.state = 'retired' THEN NULL ELSE p.not_before END
FROM wanted AS w JOIN host_names AS h ON h.name = w.host
WHERE p.id = w.id
RETURNING p.role, p.state
)
INSERT INTO row_counts AS c (name, rows)
SELECT name, sum(moved) FROM (
    SELECT role || ' ' || state AS name, 1 AS moved FROM renewed
    UNION ALL SELECT role || ' ' || state, -1 FROM before
) AS m GROUP BY name HAVING sum(moved) <> 0
ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows;

-- name: page_edit
-- Change what users decide of pages; NULL leaves a column as it is. Those of another state are counted there.
WITH before AS (
    SELECT role, state FROM pages WHERE id = ANY($1::bigint[])
), edited AS (
UPDATE pages AS p
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
    INSERT INTO row_counts AS c (name, rows)
    SELECT name, sum(moved) FROM (
        SELECT role || ' ' || state AS name, 1 AS moved FROM edited
        UNION ALL SELECT role || ' ' || state, -1 FROM before
    ) AS m GROUP BY name HAVING sum(moved) <> 0
    ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows
)
SELECT id, state FROM edited;

-- name: page_drop_signals
-- Nobody waits for pages that are retired.
DELETE FROM signals WHERE page_id = ANY($1::bigint[]);

-- name: page_read
-- Rows of pages, in the order of the ids.
SELECT r.*
FROM unnest($1::bigint[]) WITH ORDINALITY AS w (id, place) JOIN page_rows AS r ON r.id = w.id
ORDER BY w.place;

-- name: page_ids
-- Pages in the order of their ids, of one role or both.
SELECT id FROM pages WHERE id > $1 AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: page_ids_in_state
-- Pages in a state, without those that are only sources.
SELECT id FROM pages WHERE state = $1 AND role = 'page' ORDER BY id;

-- name: page_ids_not_active
-- The same of a state that few pages are in.
SELECT id FROM pages WHERE state = $1 AND state <> 'active' AND role = 'page' ORDER BY id;

-- name: page_ids_of_sources
-- The same of those that are only sources, which are few.
SELECT id FROM pages WHERE role = 'source' AND id > $1 ORDER BY id LIMIT $2;

-- name: page_ids_asked_last
-- Pages of one host by when they were asked, the latest first.
SELECT id FROM pages
WHERE host_no = (SELECT no FROM host_names WHERE name = $1) AND attempted_at IS NOT NULL
ORDER BY attempted_at DESC, id DESC LIMIT $2;

-- name: page_ids_of_host
-- The same of one host.
SELECT id FROM pages WHERE host_no = (SELECT no FROM host_names WHERE name = $4) AND id > $1
    AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: page_ids_of_group
-- The same of one group.
SELECT id FROM pages WHERE group_name = $4 AND id > $1 AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: page_ids_of_host_and_group
-- The same of one group of one host.
SELECT id FROM pages WHERE host_no = (SELECT no FROM host_names WHERE name = $4) AND group_name = $5 AND id > $1
    AND ($3::text IS NULL OR role = $3) ORDER BY id LIMIT $2;

-- name: pause_add
-- Hold something back; a second time changes nothing.
INSERT INTO pauses (kind, name_key, name, since) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING;

-- name: pause_end
-- End a pause.
DELETE FROM pauses WHERE kind = $1 AND name_key = $2 AND name = $3;

-- name: schedule_hosts
-- Names of hosts in the order of their numbers.
SELECT no, name FROM host_names ORDER BY no;

-- name: schedule_shape
-- How many pages there are, how wide the widest belief is, and which objectives, in one pass over all pages.
SELECT count(*), coalesce(max(octet_length(belief)), 0),
    array_agg(DISTINCT objective) FILTER (WHERE objective IS NOT NULL)
FROM pages WHERE state <> 'retired' AND role = 'page';

-- name: schedule_pages
-- What a scheduler needs of each page, every column present and of one width, so that rows are read as one array.
-- $1: names of objectives; $2: zeros, as many as the widest belief has bytes.
SELECT p.id, p.host_no, p.importance,
    CASE WHEN p.objective IS NULL THEN 0 ELSE array_position($1::text[], p.objective) END::int2,
    CASE WHEN p.min_interval_s <> 0 THEN greatest(p.min_interval_s, 0) ELSE 'nan' END,
    coalesce(p.max_interval_s, 'infinity'), coalesce(p.fetched_at, 'nan'),
    coalesce(p.not_before, 'nan'), p.failures::int4,
    p.state = 'quarantined'
        OR p.group_name IN (SELECT name FROM pauses WHERE kind = 'group')
        OR p.host_no IN (SELECT h.no FROM pauses AS u JOIN host_names AS h ON h.name = u.name
            WHERE u.kind = 'host')
        OR p.url_key IN (SELECT name_key FROM pauses WHERE kind = 'page'),
    CASE WHEN octet_length(p.belief) = octet_length($2::bytea) THEN p.belief
        WHEN p.belief IS NULL THEN $2::bytea
        ELSE overlay($2::bytea PLACING p.belief FROM 1) END
FROM pages AS p
WHERE p.state <> 'retired' AND p.role = 'page';
