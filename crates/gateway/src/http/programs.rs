//! The programs that a database has run, for publishers who go back to one (06 §5.4a). Of ours.

use std::time::UNIX_EPOCH;

use axum::http::StatusCode;
use lightcone_types::Hash;
use serde_json::json;

use super::delivery;
use super::path::{HashPath, Permitted};
use crate::reply::{self, Failure, Reply};

/// GET `/v1/database/:n/programs`: those before the one that runs, the last one first.
pub(super) async fn list(Permitted { state, record, .. }: Permitted) -> Reply {
    let node = state.node.clone();
    let earlier = reply::blocking(move || node.databases.earlier_programs(&record)).await?;
    let listed = earlier.iter().map(|program| {
        let until = program.until.duration_since(UNIX_EPOCH).unwrap_or_default();
        json!({
            "program": program.hash.to_hex(),
            "host_type": format!("{:?}", program.host_type),
            "bytes": program.bytes,
            "until_us": until.as_micros() as u64,
        })
    });
    Ok(reply::json_value(
        &json!({ "programs": listed.collect::<Vec<_>>() }),
    ))
}

/// GET `/v1/database/:n/programs/:hash`: one of them, or the one that runs.
pub(super) async fn one(
    Permitted { state, record, .. }: Permitted,
    HashPath(hash): HashPath,
) -> Reply {
    let running = state.node.databases.get(&record).await?;
    let node = state.node.clone();
    let made = delivery::made(&state, move || {
        if running.handle.program_hash() == hash {
            return Ok(running.handle.program().to_vec());
        }
        let earlier = node.databases.earlier_programs(&record);
        let found = earlier.iter().find(|program| program.hash == hash);
        let program = found.and_then(|program| program.read());
        program
            .map(|program| program.to_vec())
            .ok_or_else(|| unknown(hash))
    });
    Ok(delivery::held(reply::BYTES, made.await?))
}

fn unknown(hash: Hash) -> Failure {
    let text =
        format!("the program {hash} is not kept: the last five that ran before are [LC0162]");
    Failure::text(StatusCode::NOT_FOUND, text)
}
