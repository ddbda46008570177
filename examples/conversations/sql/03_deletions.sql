-- What a deleted row still owes. Row triggers, because they also fire under cascades, from wherever those begin.

create function chat.membership_ended() returns trigger language plpgsql as $$
declare
    v chat.conversation;
begin
    -- Under the deletion of the conversation itself there is nobody left to remove: that is owed as a whole.
    select * into v from chat.conversation c where c.id = old.conversation;
    if found then
        insert into chat.removal (conversation, who) values (old.conversation, old.who)
        on conflict (conversation, who) do update set requested_at = now(), confirmed_at = null;
        perform chat.owe('twilio.remove_participant', v.id, v.organization, v.project, old.who);
        perform chat.owe('twilio.participants', v.id, v.organization, v.project);
    end if;
    return null;
end $$;
create trigger membership_ended after delete on chat.conversation_member for each row execute function chat.membership_ended();

create function chat.conversation_deleted() returns trigger language plpgsql as $$
begin
    insert into chat.conversation_tombstone (conversation, organization, project, sid, sid_at)
    values (old.id, old.organization, old.project, old.sid, old.sid_at);
    perform chat.owe('twilio.delete', old.id, old.organization, old.project);
    return null;
end $$;
create trigger conversation_deleted after delete on chat.conversation for each row execute function chat.conversation_deleted();

create function chat.no_truncate() returns trigger language plpgsql as $$
begin
    raise exception '% cannot be truncated: its rows owe cleanup', tg_table_name using errcode = '55000';
end $$;
create trigger no_truncate before truncate on chat.conversation execute function chat.no_truncate();
create trigger no_truncate before truncate on chat.conversation_member execute function chat.no_truncate();
