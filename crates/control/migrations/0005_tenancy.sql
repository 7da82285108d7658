-- What people call a key, and the one sandbox that it is for, if it is for one.
ALTER TABLE api_keys ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN sandbox_id TEXT;

CREATE UNIQUE INDEX api_keys_by_prefix ON api_keys (prefix) WHERE prefix <> 'admin';

-- What a project may use at once. Without a number: as much as there is.
ALTER TABLE projects ADD COLUMN sandboxes_max BIGINT;
ALTER TABLE projects ADD COLUMN vcpus_max BIGINT;
ALTER TABLE projects ADD COLUMN memory_mb_max BIGINT;
ALTER TABLE projects ADD COLUMN snapshot_mb_max BIGINT;
ALTER TABLE projects ADD COLUMN volume_mb_max BIGINT;
ALTER TABLE projects ADD COLUMN requests_per_second BIGINT;
-- Whether the audit record keeps what commands printed.
ALTER TABLE projects ADD COLUMN keeps_output BIGINT NOT NULL DEFAULT 0;

-- The numbers of the last event and of the last entry of the audit record. They never go back, and
-- tell nobody how much others do.
ALTER TABLE projects ADD COLUMN events_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN audit_seq BIGINT NOT NULL DEFAULT 0;

-- Who did what. Rows are added and, when they are old, removed; none is ever changed.
CREATE TABLE audit_records (
    project_id TEXT NOT NULL REFERENCES projects (id),
    seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    key_prefix TEXT NOT NULL,
    request_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    subject TEXT,
    status BIGINT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (project_id, seq)
);

CREATE INDEX audit_records_by_subject ON audit_records (project_id, subject, seq);
CREATE INDEX audit_records_by_age ON audit_records (at_ms);

-- What happened to sandboxes, in order.
CREATE TABLE events (
    project_id TEXT NOT NULL REFERENCES projects (id),
    seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    sandbox_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    PRIMARY KEY (project_id, seq)
);

CREATE INDEX events_by_age ON events (at_ms);
