//! The default `config.toml`.

use lightcone_limits::{written, Limits, WebSocket};

/// The file that is written when the data directory has none: every key, commented out at its default.
pub fn default_text() -> String {
    include_str!("template.toml")
        .replace("{websocket}\n", &written(&WebSocket::rows()))
        .replace("{limits}\n", &written(&Limits::rows()))
}

/// The same with every key in force.
pub(super) fn uncommented_default() -> String {
    let lines = default_text();
    let lines = lines.lines().map(|line| match line.strip_prefix("# ") {
        Some(key) if key.contains(" = ") && !key.starts_with(char::is_uppercase) => {
            format!("{key}\n")
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}
