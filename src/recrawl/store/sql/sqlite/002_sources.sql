-- Sources: pages that lead to others. A page that is fetched for nothing else is not among the tracked ones.

ALTER TABLE pages ADD COLUMN source_only INTEGER NOT NULL DEFAULT 0;  -- 1: of role `source`
CREATE INDEX pages_source_only ON pages (id) WHERE source_only = 1;

CREATE TABLE sources (
    page_id   INTEGER PRIMARY KEY,
    kind      TEXT    NOT NULL,
    found_by  TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    added_at  REAL    NOT NULL,
    polls     INTEGER NOT NULL,
    found     INTEGER NOT NULL,
    signals   INTEGER NOT NULL,
    useful_at REAL
) STRICT;

CREATE TABLE source_memories (     -- large, so apart from what is read for all sources
    page_id INTEGER PRIMARY KEY,
    memory  BLOB NOT NULL
) STRICT;

DROP VIEW page_rows;
CREATE VIEW page_rows AS           -- the columns of PageRow, in its order
SELECT pages.id, addresses.url, hosts_named.name AS host, groups_named.name AS in_group, pages.importance,
       objectives_named.name AS objective, pages.min_interval_s, pages.max_interval_s, sources_named.name AS source,
       addresses.added_at, iif(pages.source_only, 'source', 'page') AS role, pages.state, pages.reason,
       pages.attempted_at, pages.fetched_at, pages.changed_at, pages.outcome, pages.failures, pages.not_before,
       pages.missing, pages.missing_since, pages.crashes, copies.etag, copies.last_modified, copies.validated_url,
       copies.raw_digest, copies.text_digest, copies.links_digest, copies.metadata_digest, copies.memory,
       pages.belief, pages.visits, pages.changes, pages.version, ifnull(leases.token, pages.last_token) AS last_token,
       pages.settled_token
FROM pages
JOIN addresses ON addresses.id = pages.id
JOIN names AS hosts_named ON hosts_named.id = pages.host
JOIN names AS groups_named ON groups_named.id = pages.in_group
JOIN names AS sources_named ON sources_named.id = addresses.source
LEFT JOIN names AS objectives_named ON objectives_named.id = pages.objective
LEFT JOIN copies ON copies.id = pages.id
LEFT JOIN leases ON leases.page_id = pages.id;
