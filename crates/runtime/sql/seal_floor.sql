-- Invariant: seals below the floor are gone, so a delivery from there cannot be told from a new one and is never executed.
select floor from backline.seal_floor
