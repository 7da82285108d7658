-- What a sandbox was asked to be, what its node said of it and how long it lives are one JSON text
-- each: no statement looks into them, so a new field of theirs is no new column. What statements
-- compare, sort by or add up stays a column.
ALTER TABLE sandboxes ADD COLUMN spec TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN lifetime TEXT NOT NULL DEFAULT '';

-- The functions are SQLite's alone: PostgreSQL has no rows from before. A text that is no JSON is
-- kept as a string, so that its row stays unreadable and the others do not become so.
UPDATE sandboxes SET
    spec = json_object(
        'template', template,
        'metadata', json(CASE WHEN json_valid(metadata) THEN metadata ELSE json_quote(metadata) END),
        'cpu_limit', cpu_limit_millis,
        'disk_wanted', disk_wanted_mib,
        'from_snapshot', from_snapshot,
        'volumes', json(CASE WHEN json_valid(volumes) THEN volumes ELSE json_quote(volumes) END),
        'fork_parent', fork_parent,
        'isolation', isolation),
    status = json_object(
        'reason', reason,
        'ready_ms', ready_ms,
        'stages', json(CASE WHEN json_valid(stages) THEN stages ELSE json_quote(stages) END)),
    lifetime = json_object(
        'ttl_seconds', ttl_seconds,
        'persistent', json(CASE WHEN persistent = 0 THEN 'false' ELSE 'true' END),
        'idle_seconds', idle_seconds,
        'on_timeout', on_timeout);

ALTER TABLE sandboxes DROP COLUMN template;
ALTER TABLE sandboxes DROP COLUMN reason;
ALTER TABLE sandboxes DROP COLUMN metadata;
ALTER TABLE sandboxes DROP COLUMN ttl_seconds;
ALTER TABLE sandboxes DROP COLUMN persistent;
ALTER TABLE sandboxes DROP COLUMN isolation;
ALTER TABLE sandboxes DROP COLUMN ready_ms;
ALTER TABLE sandboxes DROP COLUMN stages;
ALTER TABLE sandboxes DROP COLUMN idle_seconds;
ALTER TABLE sandboxes DROP COLUMN on_timeout;
ALTER TABLE sandboxes DROP COLUMN from_snapshot;
ALTER TABLE sandboxes DROP COLUMN cpu_limit_millis;
ALTER TABLE sandboxes DROP COLUMN disk_wanted_mib;
ALTER TABLE sandboxes DROP COLUMN volumes;
ALTER TABLE sandboxes DROP COLUMN fork_parent;
