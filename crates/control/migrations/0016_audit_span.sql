-- A part of the audit record by time: without it, all entries of a project are read. The number is
-- in it, so that the newest of a part are found without reading the entries themselves.
CREATE INDEX audit_records_by_time ON audit_records (project_id, at_ms, seq);
