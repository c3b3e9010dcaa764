//! Tokens that were verified before: checking a signature costs more than the call that it comes with.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::token::Caller;

/// Tokens that are kept. One more, and all are forgotten: the next use of each is checked again.
pub(super) const KNOWN_TOKENS_MAX: usize = 1024;
/// Longer tokens are not kept.
const TOKEN_BYTES_MAX: usize = 2048;

/// Callers by their tokens. Only tokens that our own key signed and that never expire: nothing can become of them.
#[derive(Default)]
pub(super) struct KnownTokens {
    callers: RwLock<HashMap<Arc<str>, Caller>>,
}

impl KnownTokens {
    pub fn get(&self, token: &str) -> Option<Caller> {
        self.callers.read().get(token).cloned()
    }

    /// Keeps a caller whose token was verified with our own key.
    pub fn keep(&self, caller: &Caller) {
        if caller.claims.expires_at.is_some() || caller.token.len() > TOKEN_BYTES_MAX {
            return;
        }
        let mut callers = self.callers.write();
        if callers.len() >= KNOWN_TOKENS_MAX {
            callers.clear();
        }
        callers.insert(caller.token.clone(), caller.clone());
    }
}
