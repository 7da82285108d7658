CREATE TABLE api_keys (
    hash TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    prefix TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT
);

CREATE INDEX api_keys_by_project ON api_keys (project_id, prefix);

CREATE TABLE idempotency_keys (
    project_id TEXT NOT NULL REFERENCES projects (id),
    idempotency_key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL, answer TEXT,
    PRIMARY KEY (project_id, idempotency_key)
);

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);

CREATE INDEX idempotency_keys_by_sandbox ON idempotency_keys (project_id, subject_id);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    created_at_ms BIGINT NOT NULL
);

CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    node_id TEXT NOT NULL,
    template TEXT NOT NULL,
    state TEXT NOT NULL,
    generation BIGINT NOT NULL,
    reason TEXT,
    metadata TEXT NOT NULL,
    ttl_seconds BIGINT,
    persistent BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory_mb BIGINT NOT NULL,
    isolation TEXT NOT NULL,
    ready_ms BIGINT,
    stages TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    deleted_at_ms BIGINT
, idle_seconds BIGINT, on_timeout TEXT NOT NULL DEFAULT 'delete', expires_at_ms BIGINT, from_snapshot TEXT, cpu_limit_millis BIGINT, disk_wanted_mib BIGINT, disk_mib BIGINT NOT NULL DEFAULT 0, volumes TEXT NOT NULL DEFAULT '[]', fork_parent TEXT, fork_tree TEXT);

CREATE INDEX sandboxes_alive_by_node ON sandboxes (node_id) WHERE deleted_at_ms IS NULL;

CREATE INDEX sandboxes_by_fork_tree ON sandboxes (project_id, fork_tree) WHERE fork_tree IS NOT NULL;

CREATE INDEX sandboxes_by_project ON sandboxes (project_id, created_at_ms);

CREATE INDEX sandboxes_deleted ON sandboxes (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;

