-- The least that a request of the intake is: one row, its id known beforehand, nothing checked, nobody rung.
insert into backline.intake (operation_id, kind, organization, operation_key, input, input_version, priority, correlation_id)
values ($1, $2, $3, $4, $5::jsonb, 1, 0::smallint, $1)
