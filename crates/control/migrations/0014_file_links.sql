-- The one file that a key is for, and what may be done with it: JSON, see `FileReach`.
ALTER TABLE api_keys ADD COLUMN file TEXT;
