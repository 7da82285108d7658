-- What is known of a sandbox that has had a machine: up to when its running time is counted (NULL
-- while it has no machine), how many samples were ever taken of it, the counters of its machine at
-- the last one, and what all its machines have used together. It goes with the sandbox.
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

-- Whose samples go first when there are too many: those of the sandbox that slept longest.
CREATE INDEX sandbox_meters_by_age ON sandbox_meters (sampled_at_ms);

-- CPU time and traffic of all machines together; memory and disk as they were.
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

-- What each project used in each hour. Rows of a project that is deleted stay until they are old.
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
