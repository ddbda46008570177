-- What the application calls in its own transactions. Each changes rows and owes convergence, or neither.

create function chat.owe(kind text, conversation uuid, organization uuid, project uuid, who jsonb default null, name text default null)
returns uuid language sql volatile as $$
    -- No serial key: the worker's kinds derive it, one for everything about a conversation.
    select backline.enqueue_operation(
        kind          => kind,
        organization  => organization,
        operation_key => conversation || coalesce('/' || who::text, ''),
        input         => jsonb_strip_nulls(jsonb_build_object('conversation', conversation, 'who', who, 'name', name)),
        project       => project)
$$;
comment on function chat.owe is 'Asks for an operation about a conversation. For reconcile kinds every call is a new generation.';

create function chat.open_conversation(conversation uuid, in_project uuid, name text) returns uuid language plpgsql volatile as $$
declare
    v_organization uuid;
begin
    insert into chat.conversation (id, organization, project, name)
    select conversation, p.organization, p.id, open_conversation.name from chat.project p where p.id = in_project
    returning organization into strict v_organization;
    return chat.owe('twilio.create', conversation, v_organization, in_project, name => name);
end $$;
comment on function chat.open_conversation is 'Opens a conversation; returns the operation that creates it at the provider.';

create function chat.add_member(to_conversation uuid, new_member uuid) returns uuid language plpgsql volatile as $$
declare
    v chat.conversation;
begin
    -- Shared: members join concurrently, and nobody joins while it is being closed or archived.
    select * into v from chat.conversation c where c.id = to_conversation and c.state = 'active' for share;
    if not found then
        raise exception 'add_member: conversation % is not active', to_conversation using errcode = '55000';
    end if;
    insert into chat.conversation_member (conversation, member, who)
    select v.id, m.id, m.who from chat.member m where m.id = new_member and m.project = v.project
    on conflict (conversation, member) do nothing;
    if not found and not exists (select from chat.conversation_member m where m.conversation = v.id and m.member = new_member) then
        raise exception 'add_member: % is no member of project %', new_member, v.project using errcode = '22023';
    end if;
    return chat.owe('twilio.participants', v.id, v.organization, v.project);
end $$;
comment on function chat.add_member is 'Lets a member of the project join; returns the operation that adds them at the provider.';

create function chat.remove_member(from_conversation uuid, old_member uuid) returns boolean language sql volatile as $$
    -- The removal is owed by the trigger on the table, so that no way to delete a row forgets it.
    with d as (delete from chat.conversation_member m where m.conversation = from_conversation and m.member = old_member returning 1)
    select exists (select from d)
$$;
comment on function chat.remove_member is 'Ends a membership; false if there was none.';

create function chat.close_conversation(conversation uuid) returns uuid language sql volatile as $$
    with u as (update chat.conversation c set state = 'closed' where c.id = conversation and c.state = 'active' returning c.*)
    select chat.owe('twilio.close', u.id, u.organization, u.project) from u
$$;
comment on function chat.close_conversation is 'Closes for good; returns the operation that closes it at the provider, null if it was not active.';

create function chat.archive_conversation(conversation uuid) returns uuid language sql volatile as $$
    with u as (update chat.conversation c set state = 'archived' where c.id = conversation and c.state in ('active', 'closed') returning c.*)
    select chat.owe('twilio.archive_close', u.id, u.organization, u.project) from u
$$;
comment on function chat.archive_conversation is 'Closes for good and puts away; returns the operation that closes it at the provider, null if it is archived or unknown.';

create function chat.delete_conversation(conversation uuid) returns boolean language sql volatile as $$
    with d as (delete from chat.conversation c where c.id = conversation returning 1)
    select exists (select from d)
$$;
comment on function chat.delete_conversation is 'Deletes a conversation; the trigger keeps its tombstone and owes the deletion at the provider.';
