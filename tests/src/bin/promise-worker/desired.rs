//! The reconcile kind: what is wanted stands in the application's table and is read again at every attempt.

use crate::provider::{Made, Provider};
use crate::{ACCOUNT, Settings};
use backline_failure::{Call, Failure, Mode};
use backline_runtime::{Conclusion, Error, KindSpec, Operation, Read, Reconcile, Record, Step};
use serde_json::{Value, json};
use sqlx::PgConnection;

pub(crate) struct Desired {
    provider: Provider,
    spec: KindSpec,
}

impl Desired {
    pub(crate) fn new(provider: &Provider, settings: &Settings) -> Desired {
        let spec = settings.shape(KindSpec::new(Mode::Reconcile, ACCOUNT));
        Desired { provider: provider.clone(), spec }
    }
}

impl Reconcile for Desired {
    const KIND: &'static str = "effect.desired";
    type Input = Value;
    type Desired = (String, i64);
    type Output = Made;

    fn spec(&self) -> KindSpec {
        self.spec.clone()
    }

    #[expect(clippy::panic, reason = "a read's panic is what the test provokes")]
    async fn read(
        &self,
        tx: &mut PgConnection,
        operation: &Operation,
        _input: &Value,
    ) -> Result<Read<(String, i64)>, sqlx::Error> {
        let wanted: Option<i64> = sqlx::query_scalar("select n from app.desired where key = $1")
            .bind(&operation.operation_key)
            .fetch_optional(tx)
            .await?;
        Ok(match wanted {
            Some(..0) => panic!("provoked in a read"),
            Some(n) => Read::Desired((operation.operation_key.clone(), n)),
            None => Read::Obsolete { rule: "deleted", seen: "no row".to_owned() },
        })
    }

    async fn converge(
        &self,
        call: &Call,
        _input: &Value,
        desired: &(String, i64),
    ) -> Result<Step<Made>, Failure> {
        let value = json!({"key": desired.0, "n": desired.1});
        self.provider.submit(call, Self::KIND, &value, None).await.map(Step::Done)
    }

    async fn record(
        &self,
        record: &mut Record<'_>,
        _input: &Value,
        end: Conclusion<'_, Made>,
    ) -> Result<(), Error> {
        let outcome = if matches!(end, Conclusion::Succeeded(_)) { "succeeded" } else { "obsolete" };
        let (id, generation) = (record.operation().id, record.operation().generation);
        sqlx::query("insert into app.done (operation, generation, outcome) values ($1, $2, $3)")
            .bind(id)
            .bind(generation)
            .bind(outcome)
            .execute(record.connection())
            .await?;
        Ok(())
    }
}
