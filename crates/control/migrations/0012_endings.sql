-- Why a sandbox went, for as long as its row stays behind it: JSON, see `Ending`.
ALTER TABLE sandboxes ADD COLUMN ended TEXT;
