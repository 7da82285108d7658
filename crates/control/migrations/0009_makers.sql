-- The key that made a key or a link, by its prefix, so that both can be ended together. Null: made
-- before this was kept, or by the server itself.
ALTER TABLE api_keys ADD COLUMN made_by TEXT;
ALTER TABLE port_links ADD COLUMN made_by TEXT;

CREATE INDEX api_keys_by_maker ON api_keys (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX port_links_by_maker ON port_links (made_by) WHERE made_by IS NOT NULL;
