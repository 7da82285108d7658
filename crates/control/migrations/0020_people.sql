-- Whose a key is that somebody got by signing in, as the provider calls them, and the digest of the
-- settings under which it was given: it ends with them. What such a key makes has both from it.
ALTER TABLE api_keys ADD COLUMN person TEXT;
ALTER TABLE api_keys ADD COLUMN sign_in TEXT;
