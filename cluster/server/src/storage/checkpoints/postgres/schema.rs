//! The database schema, created and changed by numbered migrations.
//!
//! To add a table, add a file `migrations/V<next number>__<name>.sql`; processes apply missing
//! migrations when they connect. Never change a file that a release has applied. During a rolling
//! upgrade an older release works with the newer tables, so only add tables and columns with
//! defaults.

use refinery::Runner;
use tokio_postgres::Client;

use super::failure::Failed;

mod embedded {
    refinery::embed_migrations!("src/storage/checkpoints/postgres/migrations");
}

/// The table in which refinery records applied migrations.
const HISTORY: &str = "purview_schema_history";

/// Only one process migrates at a time.
const LOCK: &str = "SELECT pg_advisory_lock(hashtext('purview schema')::bigint)";

/// Applies missing migrations. The connection must not be used afterwards, because it holds the
/// lock.
pub async fn migrate(client: &mut Client) -> Result<(), Failed> {
    if is_current(client).await? {
        return Ok(());
    }
    client.batch_execute("SET statement_timeout = 0").await.map_err(|e| Failed::from(&e))?;
    client.query_one(LOCK, &[]).await.map_err(|e| Failed::from(&e))?;
    let report = runner().run_async(client).await.map_err(|e| match of(&e) {
        // A gateway's user creates no tables.
        Failed::Refused(cause) => Failed::Refused(format!(
            "{cause}; the tables of this release are missing, and this user may not create them: \
             start a node first, and grant the gateways' user its rights (docs/cluster.md)"
        )),
        failed => failed,
    })?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrating the tables of PostgreSQL");
    }
    Ok(())
}

fn runner() -> Runner {
    let mut runner = embedded::migrations::runner();
    runner.set_migration_table_name(HISTORY);
    // A newer release may have applied more migrations.
    runner.set_abort_missing(false)
}

/// Whether all migrations are applied; then the user needs no right to change tables.
async fn is_current(client: &Client) -> Result<bool, Failed> {
    let there = format!("SELECT to_regclass('{HISTORY}') IS NOT NULL");
    let row = client.query_one(&there, &[]).await.map_err(|e| Failed::from(&e))?;
    if !row.try_get::<_, bool>(0).map_err(|e| Failed::from(&e))? {
        return Ok(false);
    }
    let all = format!("SELECT version FROM {HISTORY}");
    let rows = client.query(&all, &[]).await.map_err(|e| Failed::from(&e))?;
    let applied = rows.iter().map(|row| row.try_get::<_, i32>(0));
    let applied: Vec<i32> = applied.collect::<Result<_, _>>().map_err(|e| Failed::from(&e))?;
    Ok(runner().get_migrations().iter().all(|m| applied.contains(&m.version())))
}

fn of(error: &refinery::Error) -> Failed {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(said) = e.downcast_ref::<tokio_postgres::Error>() {
            return Failed::from(said);
        }
        cause = e.source();
    }
    Failed::Refused(crate::causes::whole(error))
}

#[cfg(test)]
mod tests {
    #[test]
    fn migrations_are_numbered_without_gaps() {
        let mut runner = super::runner();
        runner.set_migration_table_name(super::HISTORY);
        let mut versions: Vec<i32> =
            runner.get_migrations().iter().map(refinery::Migration::version).collect();
        versions.sort_unstable();
        assert_eq!(versions, (1..=versions.len() as i32).collect::<Vec<_>>());
    }
}
