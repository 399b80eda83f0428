//! How a process is asked to end.

/// Ctrl-C, and SIGTERM as init systems and containers send it.
#[cfg(unix)]
pub struct ShutdownSignals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl ShutdownSignals {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<ShutdownSignals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(ShutdownSignals(signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    }

    /// Waits until it is asked.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
pub struct ShutdownSignals;

#[cfg(not(unix))]
impl ShutdownSignals {
    /// Listens from now on.
    pub fn listen() -> std::io::Result<ShutdownSignals> {
        Ok(ShutdownSignals)
    }

    pub async fn asked(&mut self) {
        if let Err(e) = tokio::signal::ctrl_c().await {
            tracing::warn!(error = %e, "cannot listen for Ctrl-C");
            std::future::pending().await
        }
    }
}
