//! Backups of databases (06 §5.13b), and new databases out of them (06 §5.13c).
//!
//! The client has the place where a backup lies: no request names a path or an address that the server would use.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::Extension;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use lightcone_backup::{Item, ObjectHash, Place};
use lightcone_control::{DatabaseName, DatabaseRecord, HostType, NameOrIdentity};
use lightcone_database::{Backup, BackupAfter, ChangesError, HostKind, Restore, RestoreError};
use lightcone_node::auth::Caller;
use lightcone_node::permissions::Action;
use lightcone_types::Hash;

use super::body::{next_frame, refused_body, SentBody, STALLED};
use super::delivery;
use super::logs::{may_see, uncached};
use super::names::registrable;
use super::path::{DatabasePath, Permitted};
use super::publish::{creation_guard, put_in_place, register, NewDatabase};
use super::publish_request::success;
use super::query::{wrong, Query};
use crate::budget::Charge;
use crate::client_address::Client;
use crate::gateway::Gateway;
use crate::pace::{Pace, Patience};
use crate::reply::{self, blocking, detached, Failure, Reply};

/// What has come of a backup is used in parts of this size.
const PART_BYTES: usize = 1 << 20;
/// When to ask again if others are restored.
const RETRY_SECONDS: u64 = 10;
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// POST `/v1/database/:n/backup`. The body has the hashes of all objects that the client has.
pub(super) async fn backup(asked: Permitted, query: Query, body: SentBody) -> Reply {
    let place = query.parsed("from", |text| text.parse::<Place>())?;
    let snapshot = query.number("snapshot")?;
    let hashes = body.read(&asked.state).await?;
    let (hashes, rest) = hashes.as_chunks::<32>();
    if !rest.is_empty() {
        let text = "the body is no list of hashes, of 32 bytes each";
        return Err(Failure::bad_request(text));
    }
    let after = BackupAfter {
        place,
        snapshot,
        objects: hashes.iter().copied().map(ObjectHash).collect(),
    };
    let running = asked.state.node.databases.get(&asked.record).await?;
    let backup = running.handle.backup(after).await?;
    let holder = backup.holder();
    let sending = Sending {
        backup,
        may_see: may_see(asked, Action::BackUp),
    };
    let parts = stream::unfold(Some(sending), |sending| async {
        let (part, sending) = sending?.next().await?;
        Some((Ok::<_, Infallible>(part), sending))
    });
    let mut response = reply::with_type(BINARY, Body::from_stream(parts));
    delivery::hold(&mut response, Some(holder));
    Ok(uncached(response))
}

/// PUT `/v1/database/:n/backup`: the client has a complete backup of all before the place `end`.
pub(super) async fn complete(Permitted { state, record, .. }: Permitted, query: Query) -> Reply {
    let end = query.parsed("end", |text| text.parse::<Place>())?;
    let end = end.ok_or_else(|| wrong("missing field `end`".into()))?;
    let running = state.node.databases.get(&record).await?;
    running.handle.note_backed_up(end).await?;
    Ok(reply::empty(StatusCode::OK))
}

struct Sending<MaySee> {
    backup: Backup,
    may_see: MaySee,
}

impl<MaySee: Fn() -> bool> Sending<MaySee> {
    /// The next part, and who goes on behind it.
    async fn next(self) -> Option<(Bytes, Option<Self>)> {
        let Sending {
            mut backup,
            may_see,
        } = self;
        let failed = |why: &str| Some((Item::Failed(why.to_owned()).to_vec().into(), None));
        if !may_see() {
            return failed("the caller may not make backups any more");
        }
        // Reads files.
        let read = blocking(move || {
            let read = backup.read();
            (backup, read)
        });
        let (backup, read) = read.await.ok()?;
        match read {
            Ok(part) => Some((Bytes::from_owner(part?), Some(Sending { backup, may_see }))),
            Err(error) => failed(&error.to_string()),
        }
    }
}

/// POST `/v1/database/:n/restore`: a new database with this name, out of the backup in the body.
pub(super) async fn restore(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
    request_body: SentBody,
) -> Reply {
    let NameOrIdentity::Name(name) = path else {
        let text = "what is restored gets a new identity, so it has to be named [LC0556]";
        return Err(Failure::bad_request(text));
    };
    let name = registrable(name)?;
    creation_guard(&state, &caller, &client)?;
    check_free(&state, &name)?;
    if state.node.databases.are_in_memory() {
        return Err(ChangesError::InMemory.into());
    }
    let turn = state.restoring.clone().try_acquire_owned();
    let turn = turn.map_err(|_| {
        let text = "other databases are restored on this server; try again later [LC0555]";
        Failure::busy_for(RETRY_SECONDS, text)
    })?;
    // To its end also if the client goes away: then the body ends, and what was made is removed.
    detached(async move {
        let _turn = turn;
        let known = state.node.control.resolve(name.as_str());
        let identity = match known {
            Some(identity) => identity,
            None => state.node.authority.mint_anonymous()?.identity,
        };
        let mut new = NewDatabase {
            name: Some(name.clone()),
            is_chosen: known.is_some(),
            record: DatabaseRecord {
                id: 0,
                identity,
                owner: caller.identity,
                // Both are known at the end.
                host_type: HostType::Wasm,
                initial_program: Hash::default(),
                replica_id: state
                    .node
                    .change_control(|control| control.next_replica_id())
                    .await?,
            },
            caller,
        };
        // Its name may have been that of another owner's database: nothing is received, and opened, under that one's identity.
        new.check(&state)?;
        let databases = &state.node.databases;
        let restore = databases.begin_restore(&new.record).await?;
        let started = async {
            let restored = receive(&state, request_body.body, restore).await?;
            new.record.host_type = match restored.kind {
                HostKind::Wasm => HostType::Wasm,
                HostKind::Js => HostType::Js,
            };
            new.record.initial_program = restored.program;
            check_free(&state, &name)?;
            new.check(&state)?;
            Ok(databases.open_restored(&new.record).await?)
        };
        let started = match started.await {
            Ok(started) => started,
            Err(failure) => {
                databases.remove_files(&new.record).await;
                return Err(failure);
            }
        };
        // The name is taken last, so that it leads to nothing that did not come to be.
        let registered = match known {
            Some(_) => Ok(true),
            None => register(&state, new.record.owner, &name, identity).await,
        };
        if !matches!(registered, Ok(true)) {
            databases.discard(&new.record, started).await;
            return Err(registered.err().unwrap_or_else(|| taken(&name)));
        }
        match put_in_place(&state, &new, started).await? {
            true => Ok(success(Some(&name), &identity, "restored")),
            false => Err(taken(&name)),
        }
    })
    .await
}

fn taken(name: &DatabaseName) -> Failure {
    let text = format!(
        "there is a database `{name}` already; what is restored is a new one beside it, so give it another name [LC0556]"
    );
    Failure::text(StatusCode::CONFLICT, text)
}

/// A name without a database is free for whom it belongs to.
fn check_free(state: &Gateway, name: &DatabaseName) -> Result<(), Failure> {
    let control = &state.node.control;
    let known = control.resolve(name.as_str());
    match known.and_then(|identity| control.database(&identity)) {
        Some(_) => Err(taken(name)),
        None => Ok(()),
    }
}

/// Reads a backup, however long it is: the disk and the client's pace bound it.
async fn receive(
    state: &Gateway,
    mut body: Body,
    mut restore: Restore,
) -> Result<lightcone_database::Restored, Failure> {
    let mut patience = Patience::new(Pace::of(&state.node.config.limits));
    let mut charge = Charge::none(&state.upload_bytes);
    let mut part = BytesMut::new();
    loop {
        let frame = next_frame(&mut body, &mut patience).await;
        let frame = frame.ok_or_else(|| refused_body(StatusCode::REQUEST_TIMEOUT, STALLED))?;
        let is_end = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|error| {
                let why = lightcone_outbound::error_chain(&error);
                refused_body(StatusCode::BAD_REQUEST, &why)
            })?;
            part.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
        if !is_end && part.len() < PART_BYTES {
            continue;
        }
        // An item is held until it is whole, and once more when it is used.
        if !charge.hold(2 * (restore.pending() + part.len())) {
            let text = "the server is receiving too much at once; try again later, or raise limits.upload-bytes-max if the backup has a transaction of more than a quarter of it [LC0115]";
            return Err(Failure::busy(text));
        }
        let came = part.split();
        let taking = blocking(move || {
            let taken = restore.take(&came);
            (restore, taken)
        });
        let (so_far, taken) = taking.await?;
        taken?;
        if is_end {
            return Ok(blocking(move || so_far.finish()).await??);
        }
        restore = so_far;
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Failure {
        let text = error.to_string();
        match error {
            RestoreError::Malformed(_) | RestoreError::Unusable(_) => Failure::bad_request(text),
            RestoreError::NoRoom => Failure::busy(text),
            RestoreError::Failed(_) => Failure::internal(text),
        }
    }
}
