//! The definition of a module as text, for whoever asks: made once for each version of the form, and shared by all answers.

use std::sync::Arc;

use bytes::Bytes;
use lightcone_schema::RawVersion;
use tokio::sync::Mutex;

use crate::error::SqlError;
use crate::handle::DatabaseHandle;

/// The texts of one module, as far as somebody has asked for them. They go with it, and with the last answer that has them.
#[derive(Default)]
pub(crate) struct SchemaTexts {
    v9: Arc<Mutex<Option<Bytes>>>,
    v10: Arc<Mutex<Option<Bytes>>>,
}

impl SchemaTexts {
    fn of(&self, version: RawVersion) -> Arc<Mutex<Option<Bytes>>> {
        match version {
            RawVersion::V9 => self.v9.clone(),
            RawVersion::V10 => self.v10.clone(),
        }
    }
}

impl DatabaseHandle {
    /// The definition of the running module (06 §5.12). It counts once as memory that clients have asked for, however many have it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub async fn schema_text(&self, version: RawVersion) -> Result<Bytes, SqlError> {
        let module = self.shared.module();
        let mut text = module.schema_texts.of(version).lock_owned().await;
        if let Some(text) = &*text {
            return Ok(text.clone());
        }
        let holder = self.holder();
        // It may have megabytes. Others who want it wait for this one, also if whoever asked has gone.
        let made = self.shared.elsewhere(move || {
            let mut bytes = module.def().schema_json(version).into_bytes();
            bytes.shrink_to_fit();
            let made = holder.hold(bytes).map(Bytes::from_owner);
            *text = made.as_ref().ok().cloned();
            made
        });
        made.await.ok_or(SqlError::ModuleGone)?
    }
}
