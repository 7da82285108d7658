CREATE TABLE api_keys (
    hash TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    prefix TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT
, label TEXT NOT NULL DEFAULT '', sandbox_id TEXT, made_by TEXT, file TEXT, person TEXT, sign_in TEXT);

CREATE INDEX api_keys_by_maker ON api_keys (made_by) WHERE made_by IS NOT NULL;

CREATE UNIQUE INDEX api_keys_by_prefix ON api_keys (prefix) WHERE prefix <> 'admin';

CREATE INDEX api_keys_by_project ON api_keys (project_id, prefix);

CREATE TABLE audit_numbers (
    singleton BIGINT PRIMARY KEY CHECK (singleton = 1),
    last BIGINT NOT NULL,
    series TEXT NOT NULL
);

CREATE TABLE audit_records (
    project_id TEXT NOT NULL REFERENCES projects (id),
    seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    key_prefix TEXT NOT NULL,
    request_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    subject TEXT,
    status BIGINT NOT NULL,
    detail TEXT NOT NULL, bytes BIGINT NOT NULL DEFAULT 0, number BIGINT NOT NULL DEFAULT 0, client TEXT,
    PRIMARY KEY (project_id, seq)
);

CREATE INDEX audit_records_by_age ON audit_records (at_ms);

CREATE INDEX audit_records_by_number ON audit_records (number) WHERE number > 0;

CREATE INDEX audit_records_by_subject ON audit_records (project_id, subject, seq);

CREATE INDEX audit_records_by_time ON audit_records (project_id, at_ms, seq);

CREATE TABLE database_identity (
    singleton BIGINT PRIMARY KEY CHECK (singleton = 1),
    id TEXT NOT NULL,
    -- Grows each time that a control plane begins to work with the node.
    epoch BIGINT NOT NULL,
    -- Whether it has never met a node.
    is_new BIGINT NOT NULL,
    node_id TEXT,
    -- Another one after the node's directory was emptied.
    node_incarnation TEXT,
    -- Whether it was found to be older than the node knows. What happens to it afterwards does not
    -- make it younger, so this stays until the operator accepts it.
    is_older BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE event_numbers (
    singleton BIGINT PRIMARY KEY CHECK (singleton = 1),
    last BIGINT NOT NULL
);

CREATE TABLE events (
    project_id TEXT NOT NULL REFERENCES projects (id),
    seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    sandbox_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT, number BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, seq)
);

CREATE INDEX events_by_age ON events (at_ms);

CREATE INDEX events_by_number ON events (number);

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

CREATE TABLE network_defaults (
    project_id TEXT PRIMARY KEY REFERENCES projects (id),
    policy TEXT NOT NULL,
    changed_at_ms BIGINT NOT NULL
);

CREATE TABLE ordered_templates (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    node_template TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL,
    made_by TEXT,
    created_at_ms BIGINT NOT NULL,
    used_at_ms BIGINT NOT NULL,
    is_deleting BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX ordered_templates_by_name ON ordered_templates (project_id, kind, name, created_at_ms);

CREATE TABLE port_links (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    port BIGINT NOT NULL,
    token_hash TEXT,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
, made_by TEXT);

CREATE INDEX port_links_by_expiry ON port_links (expires_at_ms);

CREATE INDEX port_links_by_maker ON port_links (made_by) WHERE made_by IS NOT NULL;

CREATE INDEX port_links_by_port ON port_links (sandbox_id, port);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    created_at_ms BIGINT NOT NULL
, sandboxes_max BIGINT, vcpus_max BIGINT, memory_mb_max BIGINT, snapshot_mb_max BIGINT, volume_mb_max BIGINT, requests_per_second BIGINT, keeps_output BIGINT NOT NULL DEFAULT 0, events_seq BIGINT NOT NULL DEFAULT 0, audit_seq BIGINT NOT NULL DEFAULT 0, audit_bytes BIGINT NOT NULL DEFAULT 0, disk_mb_max BIGINT, state TEXT NOT NULL DEFAULT 'active', state_reason TEXT NOT NULL DEFAULT '', sandboxes_used BIGINT NOT NULL DEFAULT 0, vcpus_used BIGINT NOT NULL DEFAULT 0, memory_mb_used BIGINT NOT NULL DEFAULT 0, disk_mib_used BIGINT NOT NULL DEFAULT 0);

CREATE TABLE sandbox_meters (
    sandbox_id TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
    project_id TEXT NOT NULL REFERENCES projects (id),
    counted_to_ms BIGINT,
    samples BIGINT NOT NULL DEFAULT 0,
    sampled_at_ms BIGINT NOT NULL DEFAULT 0,
    machine TEXT NOT NULL DEFAULT '',
    machine_cpu_us BIGINT NOT NULL DEFAULT 0,
    machine_in_bytes BIGINT NOT NULL DEFAULT 0,
    machine_out_bytes BIGINT NOT NULL DEFAULT 0,
    cpu_us BIGINT NOT NULL DEFAULT 0,
    in_bytes BIGINT NOT NULL DEFAULT 0,
    out_bytes BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX sandbox_meters_by_age ON sandbox_meters (sampled_at_ms);

CREATE TABLE sandbox_samples (
    sandbox_id TEXT NOT NULL REFERENCES sandbox_meters (sandbox_id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    cpu_us BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    in_bytes BIGINT NOT NULL,
    out_bytes BIGINT NOT NULL,
    PRIMARY KEY (sandbox_id, number)
);

CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    node_id TEXT NOT NULL,
    state TEXT NOT NULL,
    generation BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory_mb BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    deleted_at_ms BIGINT
, expires_at_ms BIGINT, disk_mib BIGINT NOT NULL DEFAULT 0, fork_tree TEXT, egress TEXT NOT NULL DEFAULT '{"mode":"deny","rules":[]}', egress_epoch BIGINT NOT NULL DEFAULT 0, egress_reserved BIGINT NOT NULL DEFAULT 0, egress_confirmed BIGINT NOT NULL DEFAULT 0, egress_changed_at_ms BIGINT NOT NULL DEFAULT 0, spec TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT '', lifetime TEXT NOT NULL DEFAULT '', ended TEXT, name TEXT, environment TEXT NOT NULL DEFAULT '{}');

CREATE INDEX sandboxes_alive_by_age ON sandboxes (created_at_ms, id) WHERE deleted_at_ms IS NULL;

CREATE INDEX sandboxes_alive_by_node ON sandboxes (node_id, created_at_ms, id)
    WHERE deleted_at_ms IS NULL;

CREATE INDEX sandboxes_alive_by_project ON sandboxes (project_id, created_at_ms, id) WHERE deleted_at_ms IS NULL;

CREATE INDEX sandboxes_by_fork_tree ON sandboxes (project_id, fork_tree) WHERE fork_tree IS NOT NULL;

CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (project_id, name)
    WHERE name IS NOT NULL AND deleted_at_ms IS NULL AND state <> 'deleting';

CREATE INDEX sandboxes_by_unconfirmed_egress ON sandboxes (node_id)
    WHERE deleted_at_ms IS NULL AND (egress_confirmed <> egress_epoch OR egress_reserved <> egress_epoch);

CREATE INDEX sandboxes_deleted ON sandboxes (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;

CREATE TABLE template_builds (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    state TEXT NOT NULL,
    document TEXT NOT NULL,
    made_by TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);

CREATE INDEX template_builds_by_age ON template_builds (project_id, started_at_ms);

CREATE TABLE template_tags (
    project_id TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    version_id TEXT NOT NULL REFERENCES ordered_templates (id) ON DELETE CASCADE,
    set_at_ms BIGINT NOT NULL,
    PRIMARY KEY (project_id, name, tag)
);

CREATE TABLE usage_hours (
    project_id TEXT NOT NULL REFERENCES projects (id),
    hour_ms BIGINT NOT NULL,
    started BIGINT NOT NULL,
    running_ms BIGINT NOT NULL,
    vcpu_ms BIGINT NOT NULL,
    memory_mb_ms BIGINT NOT NULL,
    cpu_us BIGINT NOT NULL,
    in_bytes BIGINT NOT NULL,
    out_bytes BIGINT NOT NULL,
    PRIMARY KEY (project_id, hour_ms)
);

CREATE INDEX usage_hours_by_hour ON usage_hours (hour_ms, project_id);

CREATE TABLE write_checks (
    id TEXT PRIMARY KEY,
    mark BIGINT NOT NULL
);

