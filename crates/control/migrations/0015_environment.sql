-- The environment variables of a sandbox: JSON, see `Environment`. Not part of what was asked for,
-- because a wake or a rollback replaces them.
ALTER TABLE sandboxes ADD COLUMN environment TEXT NOT NULL DEFAULT '{}';
