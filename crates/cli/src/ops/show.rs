//! `backline ops show`.

use crate::Verdict;
use crate::explain::OperationStory;
use crate::output::Output;
use sqlx::PgPool;
use uuid::Uuid;

pub(super) async fn run(pool: &PgPool, id: Uuid, output: &Output) -> anyhow::Result<Verdict> {
    let Some(story) = OperationStory::load(pool, id).await? else {
        anyhow::bail!("operation {id} is not there: no committed transaction visible here asked for it");
    };
    output.answer(&story, || story.page())?;
    Ok(Verdict::Good)
}
