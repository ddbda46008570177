-- Invariant: sleeping workers look at what this transaction made ready once it has committed.
select backline.ring('backline_intake')
