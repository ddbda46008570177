-- Invariant: nothing is claimed in a life of the database that was not adopted, however short the failover was: a transaction that was repeated
-- on another server must notice by itself.
select backline.incarnation_adopted() as "same!"
