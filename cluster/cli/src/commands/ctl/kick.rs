//! `purview ctl kick`: ends the sessions of a subject in the whole cluster.

use std::time::Duration;

use clap::Args;

use super::ConsoleArgs;
use purview_server::admin::kick::KickOrder;
use purview_server::admin::orders::Ordered;

/// `purview ctl kick`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl kick ada\n  \
    purview ctl kick ada --for 1h\n  \
    purview ctl kick ada --for 0s\n\n\
    Ends every session of the subject at all gateways (close code 4011); the players leave. With --for the \
    subject is barred: gateways refuse new sessions for that time, also gateways that start later. --for 0s lifts \
    the bar. Without --for an earlier bar remains.\n\n\
    Exit codes: 0 the order is stored, and every process carries it out within seconds; 1 failed; 2 invalid command line.")]
pub struct KickArgs {
    /// The subject: `sub` of the tokens.
    pub subject: String,
    /// How long to refuse new sessions of the subject.
    #[arg(long = "for", value_name = "TIME", value_parser = purview_demo::flags::time)]
    pub bar: Option<Duration>,
    /// The server: any process of the cluster.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Gives the order.
pub(super) async fn kick(args: &KickArgs) -> anyhow::Result<u8> {
    let for_ms = args.bar.map(|bar| u64::try_from(bar.as_millis()).unwrap_or(u64::MAX));
    let order = KickOrder { subject: args.subject.clone(), for_ms };
    let told = args.console.post("/api/kick", &order).await?;
    let _: Ordered = told.read()?;
    told.print(args.json, &format!("the sessions of {:?} are ended\n", args.subject))?;
    Ok(0)
}
