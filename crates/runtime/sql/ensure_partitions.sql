-- Invariant: a partition exists before its first row is due.
select backline.ensure_partitions()
