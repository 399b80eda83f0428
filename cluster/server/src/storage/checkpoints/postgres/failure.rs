//! Failures of requests to PostgreSQL, classified by what the caller can do about them.

use tokio_postgres::Error;

use crate::causes::whole;
use crate::storage::CheckpointError;

#[derive(Debug)]
pub enum Failed {
    /// The request may succeed later.
    Unreachable(String),
    /// The server refuses writes: no connection to it is usable.
    ReadOnly(String),
    /// The connection ended before the answer.
    Closed(String),
    /// A table is missing: this is another database than before.
    NoTable(String),
    /// The request fails however often it is repeated.
    Refused(String),
}

impl Failed {
    pub fn told(self, store: &str, asked: &'static str) -> CheckpointError {
        let store = store.to_owned();
        match self {
            Failed::Unreachable(cause) | Failed::Closed(cause) | Failed::NoTable(cause) => {
                CheckpointError::Unreachable { store, asked, cause }
            }
            Failed::ReadOnly(cause) => {
                let cause =
                    format!("{cause}; connect to the server that accepts writes (the primary)");
                CheckpointError::Unreachable { store, asked, cause }
            }
            Failed::Refused(cause) => CheckpointError::Refused { store, asked, cause },
        }
    }
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Failed {
        let Some(said) = error.as_db_error() else {
            let cause = whole(error);
            return match error.is_closed() {
                true => Failed::Closed(cause),
                false => Failed::Unreachable(cause),
            };
        };
        let code = said.code().code();
        let cause = format!("{} ({code})", said.message());
        // Error classes: connection, rollback, resources, object in use, operator, system.
        let passes = ["08", "40", "53", "55", "57", "58"];
        match code {
            // read_only_sql_transaction
            "25006" => Failed::ReadOnly(cause),
            // undefined_table
            "42P01" => Failed::NoTable(cause),
            // admin_shutdown, crash_shutdown
            "57P01" | "57P02" => Failed::Closed(cause),
            _ if passes.iter().any(|class| code.starts_with(class)) => Failed::Unreachable(cause),
            _ => Failed::Refused(cause),
        }
    }
}
