-- Sources: pages that lead to others. A page that is fetched for nothing else is not among the tracked ones.
ALTER TABLE recrawl.pages
    ADD COLUMN role text NOT NULL DEFAULT 'page' CHECK (role IN ('page', 'source'));
CREATE INDEX pages_of_sources ON recrawl.pages (id) WHERE role = 'source';

CREATE TABLE recrawl.sources (
    page_id bigint PRIMARY KEY,
    kind text NOT NULL,
    found_by text NOT NULL,
    state text NOT NULL,
    reason text NOT NULL,
    added_at double precision NOT NULL,
    polls bigint NOT NULL,
    found bigint NOT NULL,
    signals bigint NOT NULL,
    useful_at double precision,
    memory bytea
) WITH (fillfactor = 70);

-- The columns of `PageRow`, in its order.
DROP VIEW recrawl.page_rows;
CREATE VIEW recrawl.page_rows AS
SELECT p.id, p.url, h.name AS host, p.group_name, p.importance, p.objective, p.min_interval_s, p.max_interval_s,
    p.source, p.added_at, p.role, p.state, p.reason, p.attempted_at, p.fetched_at, p.changed_at, p.outcome, p.failures,
    p.not_before, p.missing, p.missing_since, p.crashes, p.etag, p.last_modified, p.validated_url, p.raw_digest,
    p.text_digest, p.links_digest, p.metadata_digest, p.memory, p.belief, p.visits, p.changes, p.version,
    coalesce(l.token, p.last_token) AS last_token, p.settled_token
FROM recrawl.pages AS p
JOIN recrawl.host_names AS h ON h.no = p.host_no
LEFT JOIN recrawl.leases AS l ON l.page_id = p.id;
