//! Invariants of conversations at Twilio, which has no keys: what the example application has committed, what the
//! provider has, and in which order the calls came.
//!
//! The journal is the judge of calls, the provider's own report the judge of states. They go to the database as two
//! parameters, so that each invariant is one statement over both sides, as in `database`.

use super::promised;
use crate::{SANDBOX, Stack, http};
use anyhow::Context;
use serde_json::Value;

/// What the statements below stand on: `$1` is the journal, `$2` the provider's report.
const SIDES: &str = "with operation as (
    select distinct id, kind, left(operation_key, 36) as about
      from (select id, kind, operation_key from backline.operation_history union all select id, kind, operation_key from backline.operation) o),
call as materialized (select j.*, o.kind as asked_by, o.about from jsonb_to_recordset($1) as j(seq bigint, kind text, path text, operation_id uuid,
        applied boolean, abandoned boolean, \"overlaps\" jsonb, received_at timestamptz) left join operation o on o.id = j.operation_id),
room as materialized (select r ->> 'sid' as sid, r ->> 'unique_name' as name, side = 'deleted' as deleted,
        array(select jsonb_array_elements_text(r -> 'states')) as states,
        array(select p ->> 'identity' collate \"C\" from jsonb_array_elements(r -> 'participants') p order by 1) as people
      from jsonb_each($2) s(side, rooms), jsonb_array_elements(rooms) r),
made as materialized (select h.id, h.finished_at, o.about, h.output ->> 'sid' as sid
      from backline.operation_history h join operation o using (id) where h.kind = 'twilio.create' and h.outcome = 'succeeded')
";

/// Number, what it says, and the rows that break it.
const NEVER: &[(&str, &str)] = &[
    (
        "10 an active conversation has its one room, open, with the committed members",
        "select c.id::text || coalesce((select format(' has %s', jsonb_agg(to_jsonb(r))) from room r where r.name = c.id::text), ' has none')
          from chat.conversation c where c.state = 'active' and not exists (select from room r where r.name = c.id::text and not r.deleted
            and r.sid = c.sid and r.states = '{active}' and r.people = array(select m.who #>> '{chat,identity}' collate \"C\"
                from chat.conversation_member m where m.conversation = c.id order by 1))",
    ),
    (
        "10 a conversation that ended is closed at the provider, once, and was never opened again",
        "select c.id::text || ' ' || c.state from chat.conversation c where c.state <> 'active' and (c.sid is not null or exists (select from made where about = c.id::text))
            and (c.ended_at is null or not exists (select from room r where r.name = c.id::text and r.sid = c.sid and r.states = '{active,closed}'))",
    ),
    (
        "10 a deleted conversation is gone at the provider, and its tombstone has the SID",
        "select t.conversation::text from chat.conversation_tombstone t where t.gone_at is null
            or exists (select from room r where r.name = t.conversation::text and (not r.deleted or r.sid is distinct from t.sid))
            or exists (select from made where about = t.conversation::text and sid is distinct from t.sid)",
    ),
    (
        "10 nobody's room exists",
        "select r.name from room r where not exists (select from chat.conversation c where c.id::text = r.name and not r.deleted)
            and not exists (select from chat.conversation_tombstone t where t.conversation::text = r.name and r.deleted)",
    ),
    (
        "6 a conversation was created once",
        "select name || ' ' || count(*) from room group by name having count(*) > 1",
    ),
    (
        "10 nothing is left to a person",
        "select id::text || ' ' || attention from chat.conversation where attention is not null",
    ),
    (
        "10 a removal was seen to be done",
        "select r.conversation::text || ' ' || r.who from chat.removal r join chat.conversation c on c.id = r.conversation where c.state = 'active'
            and r.confirmed_at is null and not exists (select from chat.conversation_member m where m.conversation = r.conversation and m.who = r.who)",
    ),
    (
        "10 generations of one operation end in their order",
        "select id::text from (select id, generation, lag(generation) over (partition by id order by finished_at) as before from backline.operation_history
            where kind like 'twilio.%') h where generation <= before",
    ),
    (
        "11 a creation's follow-up is computed from its name, and is there",
        "select m.about from made m join backline.operation_history h on h.id = m.id and h.outcome = 'succeeded' where not exists (
            select from backline.operation_identity i where i.id in (backline.operation_id(h.organization, 'twilio.participants', m.about),
                backline.operation_id(h.organization, 'twilio.close', m.about), backline.operation_id(h.organization, 'twilio.archive_close', m.about),
                backline.operation_id(h.organization, 'twilio.delete', m.about)))",
    ),
    (
        "11 whoever wrote participants had the look after the lag",
        "select h.id::text || ' generation ' || h.generation from backline.operation_history h where h.outcome = 'succeeded' and (h.kind = 'twilio.participants'
                and ((h.output ->> 'added')::int > 0 or h.output -> 'removed' <> '[]') or h.kind = 'twilio.remove_participant' and h.output = '\"removed\"')
            and not exists (select from backline.operation_history l where l.finished_at > h.finished_at
                and l.id = backline.operation_id(h.organization, 'twilio.participants', left(h.operation_key, 36)))",
    ),
    (
        "26 while a creation is in doubt nobody else asks about the conversation",
        "select format('%s: %s (call %s) before the creation (call %s) had its outcome', c.about, o.asked_by, o.seq, c.seq) from call c
            join backline.operation_history h on h.id = c.operation_id join call o on o.about = c.about and o.operation_id <> c.operation_id
            where c.kind = 'conversation.create' and c.applied and o.received_at > c.received_at and o.received_at < h.finished_at",
    ),
    (
        "8 what was created at the provider is recorded as created",
        "select format('%s (call %s)', c.about, c.seq) from call c where c.kind = 'conversation.create' and c.applied
            and not exists (select from made m where m.id = c.operation_id)",
    ),
    (
        "26 once a SID is recorded nobody has to ask by name",
        "select format('%s: %s (call %s)', o.about, o.asked_by, o.seq) from made m join call o on o.about = m.about
            where o.asked_by <> 'twilio.create' and o.received_at > m.finished_at and o.path = '/v1/Conversations/' || m.about",
    ),
    (
        "26 no two calls about one conversation overlap, but those of who had given up or had lost its claim",
        "select format('%s %s (call %s) with %s %s (call %s)', a.asked_by, a.kind, a.seq, b.asked_by, b.kind, b.seq)
          from call a cross join lateral jsonb_array_elements_text(a.\"overlaps\") other(seq) join call b on b.seq = other.seq::bigint
         where a.abandoned is not true and b.abandoned is not true and not exists (select from backline.attempt_evidence e
            where e.code = 'lease_expired' and e.operation_id in (a.operation_id, b.operation_id))",
    ),
];

/// Everything about conversations that is wrong, in words. Ask only at rest.
///
/// # Errors
/// The database, the journal or the provider's report cannot be read.
pub async fn conversation_violations(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let mut journal = stack.journal()?;
    journal.retain(|line| line["provider"] == "twilio" && line["replied"] != "held");
    let (_, sandbox) = stack.members().find(|(name, _)| *name == SANDBOX).context("there is no sandbox")?;
    let report: Value =
        serde_json::from_str(&http::must(sandbox.address()?, "GET", "/twilio", &Value::Null)?)?;
    let mut wrong = Vec::new();
    for (name, sql) in NEVER {
        // Both parameters are used in every statement, so that both have a type.
        let sql = format!(
            "{SIDES} select x from ({sql}) as rows(x) where $1::jsonb is not null and $2::jsonb is not null"
        );
        let query =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(Value::from(journal.clone())).bind(&report);
        let rows: Vec<String> = query.fetch_all(stack.pool()).await.context(*name)?;
        wrong.extend(rows.into_iter().map(|row| format!("{name}: {row}")));
    }
    Ok(wrong)
}

/// As [`conversation_violations`], for a run that must be clean.
///
/// # Errors
/// An invariant does not hold; the error names all that do not.
pub async fn conversations(stack: &Stack) -> anyhow::Result<()> {
    let wrong = conversation_violations(stack).await?;
    promised(wrong.is_empty(), || format!("violated invariants of conversations:\n{}", wrong.join("\n")))
}
