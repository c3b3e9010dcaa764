//! Calls of views and their outcomes (spec 03 §11.7, §14).

use std::sync::Arc;

use lightcone_types::bsatn::Reader;
use lightcone_types::{ConnectionId, Identity, Timestamp};

use crate::ReducerCall;

/// A call of a view. It has no connection and no time.
#[derive(Clone, Copy, Debug)]
pub struct ViewCall<'a> {
    /// Its position among the views of its kind (spec 02 §9.3).
    pub id: u32,
    /// The canonical name, for console records.
    pub name: &'a Arc<str>,
    /// None for an anonymous view.
    pub sender: Option<Identity>,
    /// In BSATN; empty for a view without parameters.
    pub args: &'a [u8],
}

impl<'a> ViewCall<'a> {
    pub fn as_call(&self) -> ReducerCall<'a> {
        ReducerCall {
            id: self.id,
            name: self.name,
            sender: self.sender.unwrap_or(Identity::ZERO),
            connection_id: ConnectionId(0),
            timestamp: Timestamp(0),
            args: self.args,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewOutcome {
    /// A BSATN array, unchecked.
    Rows(Vec<u8>),
    /// The text of a query for the rows, unchecked.
    Query(String),
    /// It threw, trapped, refused, or returned an invalid result.
    Failed { message: String },
    TimedOut {
        /// Names the limit.
        message: String,
    },
}

impl ViewOutcome {
    /// From a result that begins with its header (spec 03 §11.7, return code 2).
    pub fn with_header(mut result: Vec<u8>) -> ViewOutcome {
        let mut reader = Reader::new(&result);
        let failed = |text: String| ViewOutcome::Failed {
            message: format!("the view's result does not decode: {text}"),
        };
        match reader.read_u8() {
            Ok(0) => {
                result.drain(..1);
                ViewOutcome::Rows(result)
            }
            Ok(1) => match reader.read_str() {
                Ok(text) => ViewOutcome::Query(text.to_owned()),
                Err(error) => failed(error.to_string()),
            },
            Ok(tag) => failed(format!("unknown header {tag}")),
            Err(error) => failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_rows_or_queries() {
        let rows = [0, 1, 0, 0, 0, 5].to_vec();
        assert_eq!(
            ViewOutcome::with_header(rows),
            ViewOutcome::Rows(vec![1, 0, 0, 0, 5])
        );
        let query = [1, 2, 0, 0, 0, b'h', b'i'].to_vec();
        assert_eq!(
            ViewOutcome::with_header(query),
            ViewOutcome::Query("hi".into())
        );
        for wrong in [
            &[][..],
            &[2],
            &[1, 9, 0, 0, 0, b'h'],
            &[1, 1, 0, 0, 0, 0xff],
        ] {
            let outcome = ViewOutcome::with_header(wrong.to_vec());
            assert!(matches!(outcome, ViewOutcome::Failed { .. }), "{outcome:?}");
        }
    }
}
