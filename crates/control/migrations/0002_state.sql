-- What a sandbox was asked to be beyond its template, its life, and where it came from.
ALTER TABLE sandboxes ADD COLUMN idle_seconds BIGINT;
ALTER TABLE sandboxes ADD COLUMN on_timeout TEXT NOT NULL DEFAULT 'delete';
-- The node's last word on when it deletes the sandbox.
ALTER TABLE sandboxes ADD COLUMN expires_at_ms BIGINT;
ALTER TABLE sandboxes ADD COLUMN from_snapshot TEXT;
ALTER TABLE sandboxes ADD COLUMN cpu_limit_millis BIGINT;
-- What the caller asked for, and what it is.
ALTER TABLE sandboxes ADD COLUMN disk_wanted_mib BIGINT;
ALTER TABLE sandboxes ADD COLUMN disk_mib BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN volumes TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sandboxes ADD COLUMN fork_parent TEXT;
ALTER TABLE sandboxes ADD COLUMN fork_tree TEXT;

CREATE INDEX sandboxes_by_fork_tree ON sandboxes (project_id, fork_tree) WHERE fork_tree IS NOT NULL;

-- A key now also belongs to a snapshot or to the tree of a fork. The answer is there once the
-- request is done, so that a repeat can tell a thing that was deleted from one that is not there yet.
ALTER TABLE idempotency_keys RENAME COLUMN sandbox_id TO subject_id;
ALTER TABLE idempotency_keys ADD COLUMN answer TEXT;
