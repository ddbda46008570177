-- An application with conversations: its tables. The worker of `workers/twilio` reads and marks some of them, see there.
create schema chat;

create table chat.organization (id uuid primary key, name text not null);
comment on table chat.organization is 'Tenants.';

create table chat.project (
    id uuid primary key,
    organization uuid not null references chat.organization on delete cascade,
    name text not null
);
comment on table chat.project is 'Projects of a tenant.';

create table chat.member (
    id uuid primary key,
    project uuid not null references chat.project on delete cascade,
    who jsonb not null check (who ? 'chat' or who ? 'messaging')
);
comment on table chat.member is 'People of a project.';
comment on column chat.member.who is 'Identity at the provider, never changed: {"chat": {"identity"}} or {"messaging": {"address", "proxy_address"}}.';

create table chat.conversation (
    id uuid primary key,
    organization uuid not null,
    project uuid not null references chat.project on delete cascade,
    name text not null,
    state text not null default 'active' check (state in ('active', 'closed', 'archived')),
    sid text unique,
    sid_at timestamptz,
    touched_at timestamptz,
    ended_at timestamptz,
    attention text
);
create index on chat.conversation (project);
comment on table chat.conversation is 'Conversations. What is wanted is in state and conversation_member; what the provider was brought to is marked by the worker.';
comment on column chat.conversation.organization is 'Of the project; kept here because a cascade deletes the project first.';
comment on column chat.conversation.state is 'Wanted: active; closed for good; archived, which is closed for good and remembered as put away. It never goes back.';
comment on column chat.conversation.sid is 'The provider''s id, written by the worker with the outcome of the creation.';
comment on column chat.conversation.sid_at is 'When sid was written; a new conversation may be invisible for a moment.';
comment on column chat.conversation.touched_at is 'When the worker last wrote participants; lists may lag behind it.';
comment on column chat.conversation.ended_at is 'When the provider was found closed.';
comment on column chat.conversation.attention is 'Stable code of what only a person can decide; null when converged.';

create table chat.conversation_member (
    conversation uuid not null references chat.conversation on delete cascade,
    member uuid not null references chat.member on delete cascade,
    who jsonb not null,
    primary key (conversation, member),
    unique (conversation, who)
);
create index on chat.conversation_member (member);
comment on table chat.conversation_member is 'Who is wanted in a conversation. A missing row makes adding somebody obsolete and proves no removal: that is chat.removal.';
comment on column chat.conversation_member.who is 'Of the member; kept here because a cascade deletes the member first.';

create table chat.removal (
    conversation uuid not null references chat.conversation on delete cascade,
    who jsonb not null,
    requested_at timestamptz not null default now(),
    confirmed_at timestamptz,
    primary key (conversation, who)
);
comment on table chat.removal is 'Who has to be removed, from the transaction that ended the membership until the conversation is deleted: an abandoned request may bring somebody back late.';
comment on column chat.removal.confirmed_at is 'When the worker saw them absent at the provider; null while that is owed.';

create table chat.conversation_tombstone (
    conversation uuid primary key,
    organization uuid not null,
    project uuid not null,
    sid text,
    sid_at timestamptz,
    deleted_at timestamptz not null default now(),
    gone_at timestamptz
);
comment on table chat.conversation_tombstone is 'What is needed to delete at the provider after the row is gone, written by the transaction that deletes it.';
comment on column chat.conversation_tombstone.sid is 'The provider''s id; null while a creation has not ended, or where there never was one.';
comment on column chat.conversation_tombstone.gone_at is 'When the worker saw it absent at the provider.';
