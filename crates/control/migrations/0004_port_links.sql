-- Who may reach a port of a sandbox without a key. Only the hash of a token is kept; a row without
-- one lets anybody in.
CREATE TABLE port_links (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port BIGINT NOT NULL,
    token_hash TEXT,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);

CREATE INDEX port_links_by_port ON port_links (sandbox_id, port);
CREATE INDEX port_links_by_expiry ON port_links (expires_at_ms);
