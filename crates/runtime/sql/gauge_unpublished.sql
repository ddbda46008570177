-- Invariant: the metric is the view.
select topic as "topic!", entries as "entries!", oldest_seconds as "oldest_seconds!" from backline.v_unpublished
