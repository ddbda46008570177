-- Invariant: nothing is claimed in a life of the database that was not adopted, however short the failover was: a transaction that was repeated
-- on another server must notice by itself.
select exists (select from backline.incarnation i, backline.current_incarnation() c
    where i.system_identifier = c.system_identifier and i.timeline = c.timeline) as "same!"
