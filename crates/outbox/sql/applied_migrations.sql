-- Invariant: a process works only on a schema that has every migration it was built with; this is what the database has.
select version, checksum, success from backline.migration order by version
