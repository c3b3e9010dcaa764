//! Publishing (06 §5.3): who may, under which identity, and making what is new. `update` does the rest.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::Extension;
use lightcone_control::{ControlDb, ControlError, DatabaseName, DatabaseRecord};
use lightcone_control::{HostType, NameOrIdentity, Registration};
use lightcone_database::{EnvironmentChange, Policy, ProgramBytes};
use lightcone_limits::duration::parse_duration;
use lightcone_node::auth::Caller;
use lightcone_node::databases::Started;
use lightcone_node::permissions::Action;
use lightcone_node::NotFound;
use lightcone_types::{Hash, Identity};
use serde_json::json;

use super::body::{SentBody, Upload};
use super::confirmation;
use super::environment::change_of;
use super::names::registrable;
use super::path::DatabasePath;
use super::publish_request::{check_action, check_replicas, host_type, publish_guard};
use super::publish_request::{success, turn_to_load};
use super::query::{wrong, Query};
use super::reset::reset_database;
use super::update::{update_database, Update};
use crate::client_address::Client;
use crate::gateway::Gateway;
use crate::publishing::Turn;
use crate::reply::{detached, Failure, Reply};

/// How often a publish begins anew because the database came or went meanwhile.
const RACES_MAX: usize = 3;

/// The parameters of a publish request.
struct Parameters {
    host_type: HostType,
    clear: bool,
    breaks_clients: bool,
    migration_token: Option<Hash>,
    num_replicas: Option<u64>,
    parent: Option<String>,
    organization: Option<String>,
    confirmation_timeout: Duration,
}

impl Parameters {
    fn parse(query: &Query) -> Result<Parameters, Failure> {
        let policies = [("Compatible", false), ("BreakClients", true)];
        let organization = match (query.text("organization")?, query.text("org")?) {
            (Some(_), Some(_)) => return Err(wrong("duplicate field `organization`".into())),
            (organization, alias) => organization.or(alias),
        };
        // A `token` that is no hash is a credential (06 §5.3).
        let migration_token = query.text("token")?.filter(|text| text.starts_with("0x"));
        let hash = |text| {
            Hash::from_json_u256(text).ok_or_else(|| wrong(format!("`{text}` is not a hash")))
        };
        Ok(Parameters {
            host_type: host_type(query)?,
            clear: query.boolean("clear")?.unwrap_or(false),
            breaks_clients: query.word("policy", &policies)?.unwrap_or(false),
            migration_token: migration_token.map(hash).transpose()?,
            num_replicas: query.number("num_replicas")?,
            parent: query.text("parent")?.map(str::to_owned),
            organization: organization.map(str::to_owned),
            confirmation_timeout: query
                .parsed("update_confirmation_timeout", parse_duration)?
                .unwrap_or(confirmation::TIMEOUT_DEFAULT)
                .min(confirmation::TIMEOUT_MAX),
        })
    }

    /// What an update may do to clients.
    fn policy(&self) -> Result<Policy, Failure> {
        match (self.breaks_clients, self.migration_token) {
            (false, _) => Ok(Policy::Compatible),
            (true, Some(token)) => Ok(Policy::BreakClients { token }),
            (true, None) => Err(Failure::bad_request(
                "Migration policy is set to `BreakClients`, but no migration token was provided.",
            )),
        }
    }

    /// `parent`, `organization` and `num_replicas` are checked and then without meaning here.
    fn check_ignored(&self, state: &Gateway) -> Result<(), Failure> {
        if let Some(parent) = &self.parent {
            state.node.resolve(&parse_reference(parent)?)?;
        }
        if let Some(organization) = &self.organization {
            if let NameOrIdentity::Name(name) = parse_reference(organization)? {
                let owner = state.node.control.owner_of_top_level_domain(name.as_str());
                owner.ok_or(NotFound::Name(name))?;
            }
        }
        check_replicas(self.num_replicas)
    }
}

fn parse_reference(text: &str) -> Result<NameOrIdentity, Failure> {
    NameOrIdentity::parse(text).map_err(|error| wrong(error.to_string()))
}

/// May this caller create a database (06 §3.7, and `publish.allowed` of the configuration)?
pub(super) fn creation_guard(
    state: &Gateway,
    caller: &Caller,
    client: &Client,
) -> Result<(), Failure> {
    if let Some(required) = &state.node.issuer_required_to_publish {
        if caller.claims.issuer.trim_end_matches('/') != required {
            let text = "To create a database, you must be logged in with a SpacetimeDB account.";
            return Err(Failure::text(StatusCode::UNAUTHORIZED, text));
        }
    }
    publish_guard(state, caller, client.is_local)?;
    Ok(state.node.control.may_have_more(&caller.identity)?)
}

/// POST `/v1/database`: a new database without a name.
pub(super) async fn create(
    State(state): State<Arc<Gateway>>,
    query: Query,
    headers: HeaderMap,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
    request_body: SentBody,
) -> Reply {
    let parameters = Parameters::parse(&query)?;
    let environment = change_of(&headers)?;
    if parameters.clear {
        let text = "Clear database requires database name or identity";
        return Err(Failure::bad_request(text));
    }
    // Before the upload: a caller who may not publish takes no memory either.
    creation_guard(&state, &caller, &client)?;
    let upload = request_body.read_program(&state).await?;
    let identity = state.node.authority.mint_anonymous()?.identity;
    let turn = turn_to_load(&state, caller.identity, &client, &upload.program).await?;
    let publish = Publish {
        state,
        caller,
        client,
        parameters,
        name: None,
        identity,
        is_chosen: false,
        upload,
        environment,
    };
    publish.run(turn).await
}

/// PUT `/v1/database/:n`.
pub(super) async fn publish(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    headers: HeaderMap,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
    request_body: SentBody,
) -> Reply {
    let parameters = Parameters::parse(&query)?;
    let environment = change_of(&headers)?;
    // Before the upload, so that a caller who may not publish takes no memory; and after it, since much may happen meanwhile.
    let action = match parameters.clear {
        true => Action::Reset,
        false => Action::Update,
    };
    admit(&state, &path, action, (&caller, &client))?;
    let upload = request_body.read_program(&state).await?;
    let (known, record) = admit(&state, &path, action, (&caller, &client))?;
    if let Some(record) = record.as_ref().filter(|_| parameters.clear) {
        if parameters.parent.is_some() {
            let text = "Setting the parent of an existing database is not supported";
            return Err(Failure::bad_request(text));
        }
        check_replicas(parameters.num_replicas)?;
        let by = (&caller, &client);
        let host_type = parameters.host_type;
        let program = (upload.program.clone(), environment);
        let identity = reset_database(&state, by, record, host_type, program).await?;
        return Ok(success(path.name(), &identity, "updated"));
    }
    if let Some(record) = &record {
        // Before its turn: opening it may take long, and loads no new module.
        state.node.databases.get(record).await?;
    }
    let owner = record.map_or(caller.identity, |record| record.owner);
    let turn = turn_to_load(&state, owner, &client, &upload.program).await?;
    let is_chosen = known.is_some() || matches!(path, NameOrIdentity::Identity(_));
    let identity = match (known, &path) {
        (Some(identity), _) => identity,
        (None, NameOrIdentity::Identity(identity)) => *identity,
        (None, NameOrIdentity::Name(name)) => {
            let name = registrable(name.clone())?;
            let identity = state.node.authority.mint_anonymous()?.identity;
            match register(&state, caller.identity, &name, identity).await? {
                true => identity,
                // Registered by another request in this moment.
                false => state.node.resolve(&path)?,
            }
        }
    };
    let publish = Publish {
        state,
        caller,
        client,
        parameters,
        name: path.name().cloned(),
        identity,
        is_chosen,
        upload,
        environment,
    };
    publish.run(turn).await
}

/// Has a name lead to a new identity. False: it leads to another one.
pub(super) async fn register(
    state: &Gateway,
    owner: Identity,
    name: &DatabaseName,
    identity: Identity,
) -> Result<bool, Failure> {
    let name = name.clone();
    let register =
        move |control: &ControlDb| control.register_name(&name, (&owner, &owner), &identity);
    match state.node.change_control(register).await? {
        Registration::Done => Ok(true),
        Registration::PermissionDenied(name) => {
            let body = json!({ "PermissionDenied": { "name": name } });
            Err(Failure::json(StatusCode::UNAUTHORIZED, body))
        }
        Registration::InUse(_) => Ok(false),
    }
}

/// The database of a path, as far as there is one, if this caller may publish there. A publish that is refused here takes
/// no name and no lock.
fn admit(
    state: &Gateway,
    path: &NameOrIdentity,
    action: Action,
    (caller, client): (&Caller, &Client),
) -> Result<(Option<Identity>, Option<DatabaseRecord>), Failure> {
    let known = match path {
        NameOrIdentity::Identity(identity) => Some(*identity),
        NameOrIdentity::Name(name) => state.node.control.resolve(name.as_str()),
    };
    let record = known.and_then(|identity| state.node.control.database(&identity));
    match &record {
        Some(record) => check_action(state, record, caller, action)?,
        None => {
            creation_guard(state, caller, client)?;
            if let Some(identity) = &known {
                state.node.control.may_choose(identity, &caller.identity)?;
            }
        }
    }
    Ok((known, record))
}

/// A publish that was let in.
struct Publish {
    state: Arc<Gateway>,
    caller: Caller,
    client: Client,
    parameters: Parameters,
    name: Option<DatabaseName>,
    identity: Identity,
    /// The caller has named it; otherwise the server has made it just now.
    is_chosen: bool,
    upload: Upload,
    environment: EnvironmentChange,
}

impl Publish {
    /// Updates the database, or creates it.
    async fn run(self, turn: Turn) -> Reply {
        self.parameters.check_ignored(&self.state)?;
        let policy = self.parameters.policy()?;
        detached(async move {
            let (state, caller) = (&*self.state, &self.caller);
            let done = |op| Ok(success(self.name.as_ref(), &self.identity, op));
            let mut turn = Some(turn);
            // The database may come or go while a module is loaded, since nothing is locked meanwhile.
            for _ in 0..RACES_MAX {
                let program = self.upload.program.clone();
                let turn = match turn.take() {
                    Some(turn) => turn,
                    None => {
                        let record = state.node.control.database(&self.identity);
                        let owner = record.map_or(caller.identity, |record| record.owner);
                        turn_to_load(state, owner, &self.client, &program).await?
                    }
                };
                if let Some(record) = state.node.control.database(&self.identity) {
                    check_action(state, &record, caller, Action::Update)?;
                    let update = Update {
                        host_type: self.parameters.host_type,
                        policy,
                        confirmation_timeout: self.parameters.confirmation_timeout,
                        program,
                        environment: self.environment.clone(),
                    };
                    update_database(state, (record, caller), update, turn).await?;
                    return done("updated");
                }
                creation_guard(state, caller, &self.client)?;
                if self.create(program, turn).await? {
                    return done("created");
                }
            }
            let text =
                "others publish and delete this database at the same time; try again [LC0123]";
            Err(Failure::busy_for(1, text))
        })
        .await
    }

    /// False if another request has created it in the meantime. The turn is given back when the module is loaded.
    async fn create(&self, program: ProgramBytes, turn: Turn) -> Result<bool, Failure> {
        let state = &self.state;
        let mut new = NewDatabase {
            caller: self.caller.clone(),
            name: self.name.clone(),
            is_chosen: self.is_chosen,
            record: DatabaseRecord {
                id: 0,
                identity: self.identity,
                owner: self.caller.identity,
                host_type: self.parameters.host_type,
                initial_program: program.hash(),
                replica_id: 0,
            },
        };
        new.check(state)?;
        new.record.replica_id = state
            .node
            .change_control(|control| control.next_replica_id())
            .await?;
        // Without a lock: this replica is in no list yet.
        let databases = &state.node.databases;
        let started = databases
            .create(&new.record, program, self.environment.clone())
            .await?;
        drop(turn);
        put_in_place(state, &new, started).await
    }
}

/// A database that is to be there, beside its data.
pub(super) struct NewDatabase {
    pub caller: Caller,
    pub name: Option<DatabaseName>,
    /// The caller has named its identity; otherwise the server has made it just now.
    pub is_chosen: bool,
    pub record: DatabaseRecord,
}

impl NewDatabase {
    /// Is this identity the caller's to take, and are all names that lead to it?
    pub(super) fn check(&self, state: &Gateway) -> Result<(), Failure> {
        let (control, caller) = (&state.node.control, &self.caller.identity);
        // Another owner's database may have been here when the upload was let in, and be gone and forgotten by now.
        if self.is_chosen {
            control.may_choose(&self.record.identity, caller)?;
        }
        // A name leads to a deleted database, or to one that is still being loaded: it stays its owner's (06 §4.2, hardened).
        control.check_names(&self.record.identity, caller)?;
        if let Some(name) = self.name.as_ref().map(DatabaseName::as_str) {
            // It may have been given to another database meanwhile.
            let owner = control.owner_of_top_level_domain(name);
            if owner.is_some_and(|owner| owner != *caller) {
                return Err(ControlError::NameOfAnother(name.to_owned()).into());
            }
        }
        Ok(())
    }
}

/// Makes a started database one that is there. False if another request has created it in the meantime. If it is not made one, its
/// files go.
pub(super) async fn put_in_place(
    state: &Gateway,
    new: &NewDatabase,
    started: Started,
) -> Result<bool, Failure> {
    let (databases, record) = (&state.node.databases, &new.record);
    let _lock = databases.lock(&record.identity).await;
    let allowed = new.check(state);
    if allowed.is_err() || state.node.control.database(&record.identity).is_some() {
        databases.discard(record, started).await;
        return allowed.map(|()| false);
    }
    let (inserted, due) = (record.clone(), started.due());
    let insert = move |control: &ControlDb| control.insert_database(inserted, due);
    match state.node.change_control(insert).await {
        Ok(inserted) => {
            databases.insert(started);
            tracing::info!(database = %inserted.identity, owner = %inserted.owner, "database created");
            Ok(true)
        }
        Err(error) => {
            databases.give_up(record, started, &error).await;
            match error {
                // A change before this one, which was not known to be made.
                ControlError::Exists(_) => Ok(false),
                error => Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmation_timeouts() {
        for (query, seconds) in [
            ("", 5),
            ("update_confirmation_timeout=90s", 90),
            ("update_confirmation_timeout=5m", 300),
            ("update_confirmation_timeout=2h", 300),
        ] {
            let parameters = Parameters::parse(&Query::parse(query)).expect(query);
            assert_eq!(
                parameters.confirmation_timeout,
                Duration::from_secs(seconds)
            );
        }
        assert!(Parameters::parse(&Query::parse("update_confirmation_timeout=5")).is_err());
    }
}
