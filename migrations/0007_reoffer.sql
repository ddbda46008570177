-- Backline, re-offer: how far the comparison of published events with seals has come.

alter table backline.required_consumer add column checked_to timestamptz not null default '-infinity';
comment on column backline.required_consumer.checked_to is 'Every event published before this was sealed by the consumer, offered again, or parked.';
-- Parked entries are few and looked at often; without this every look reads the whole outbox.
create index outbox_parked on backline.outbox (parked_at) where parked_at is not null;

grant update (checked_to) on backline.required_consumer to backline_relay;
grant select on sequence backline.outbox_seq_seq to backline_relay;
