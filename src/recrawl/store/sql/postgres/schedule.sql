-- name: schedule_hosts
-- Names of hosts in the order of their numbers.
SELECT no, name FROM recrawl.host_names ORDER BY no;

-- name: schedule_shape
-- How many pages there are, how wide the widest belief is, and which objectives, in one pass over all pages.
SELECT count(*), coalesce(max(octet_length(belief)), 0),
    array_agg(DISTINCT objective) FILTER (WHERE objective IS NOT NULL)
FROM recrawl.pages WHERE state <> 'retired' AND role = 'page';

-- name: schedule_pages
-- What a scheduler needs of each page, every column present and of one width, so that rows are read as one array.
-- $1: names of objectives; $2: zeros, as many as the widest belief has bytes.
SELECT p.id, p.host_no, p.importance,
    CASE WHEN p.objective IS NULL THEN 0 ELSE array_position($1::text[], p.objective) END::int2,
    CASE WHEN p.min_interval_s <> 0 THEN greatest(p.min_interval_s, 0) ELSE 'nan' END,
    coalesce(p.max_interval_s, 'infinity'), coalesce(p.fetched_at, 'nan'),
    coalesce(p.not_before, 'nan'), p.failures::int4,
    p.state = 'quarantined'
        OR p.group_name IN (SELECT name FROM recrawl.pauses WHERE kind = 'group')
        OR p.host_no IN (SELECT h.no FROM recrawl.pauses AS u JOIN recrawl.host_names AS h ON h.name = u.name
            WHERE u.kind = 'host')
        OR p.url_key IN (SELECT name_key FROM recrawl.pauses WHERE kind = 'page'),
    CASE WHEN octet_length(p.belief) = octet_length($2::bytea) THEN p.belief
        WHEN p.belief IS NULL THEN $2::bytea
        ELSE overlay($2::bytea PLACING p.belief FROM 1) END
FROM recrawl.pages AS p
WHERE p.state <> 'retired' AND p.role = 'page';
