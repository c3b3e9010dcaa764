//! Signals that end a command.

/// Resolves when the user presses Ctrl-C, or the system wants the program to end; with `hang_up` also when its terminal is gone.
///
/// Signals are heard from this call on, not only once the future is polled: what has been sent while a server starts ends it as well.
/// In a runtime only.
pub fn stop(hang_up: bool) -> impl std::future::Future<Output = ()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{signal, SignalKind};
        let heard = |kind| {
            let signals = signal(kind).ok();
            async move {
                match signals {
                    Some(mut signals) => drop(signals.recv().await),
                    None => std::future::pending().await,
                }
            }
        };
        let interrupt = heard(SignalKind::interrupt());
        let terminate = heard(SignalKind::terminate());
        let hung_up = hang_up.then(|| heard(SignalKind::hangup()));
        async move {
            tokio::select! {
                () = interrupt => {}
                () = terminate => {}
                Some(()) = futures_util::future::OptionFuture::from(hung_up) => {}
            }
        }
    }
    #[cfg(not(unix))]
    async move {
        let _ = (hang_up, tokio::signal::ctrl_c().await);
    }
}

#[cfg(all(test, unix))]
mod tests {
    #[tokio::test]
    async fn a_signal_is_heard_before_the_future_is_polled() {
        let stop = super::stop(true);
        let this = std::process::id().to_string();
        let kill = std::process::Command::new("kill")
            .args(["-HUP", &this])
            .status();
        assert!(kill.expect("kill runs").success());
        let heard = tokio::time::timeout(std::time::Duration::from_secs(10), stop);
        heard.await.expect("the signal is heard");
    }
}
