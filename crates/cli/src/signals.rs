//! Signals that end a command.

/// Resolves when the user presses Ctrl-C, or the system wants the program to end; with `hang_up` also when its terminal is gone.
pub async fn stop(hang_up: bool) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{signal, SignalKind};
        let wait = async |kind| match signal(kind) {
            Ok(mut signals) => drop(signals.recv().await),
            Err(_) => std::future::pending().await,
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = wait(SignalKind::terminate()) => {}
            () = wait(SignalKind::hangup()), if hang_up => {}
        }
    }
    #[cfg(not(unix))]
    let _ = (hang_up, tokio::signal::ctrl_c().await);
}
