-- Invariant: a partition exists before its first row is due. Makes one; 0 = all are there.
select backline.ensure_partitions()
