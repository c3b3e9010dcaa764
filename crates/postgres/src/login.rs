//! The start of a session: encryption where there is a certificate, and a token as password (06 §6).

use lightcone_control::NameOrIdentity;
use lightcone_database::{Caller, Rights};
use lightcone_node::Node;

use super::commands::{setting, Names};
use super::failure::{state, Failure};
use super::messages::{Body, Startup, Wire, WireError};
use super::shared::Postgres;

/// Requests for encryption that are answered before the start has to come.
const ENCRYPTION_REQUESTS_MAX: usize = 2;
const OK: u32 = 0;
const CLEARTEXT_PASSWORD: u32 = 3;

/// Who was let in, and to what.
pub(super) struct Login {
    pub caller: Caller,
    /// When the token ends, in seconds since 1970.
    pub expires_at: Option<i64>,
    pub database: NameOrIdentity,
    pub names: Names,
}

/// Logs a client in. None: it was refused with a message, or has gone.
pub(super) async fn login(
    wire: Wire,
    postgres: &Postgres,
) -> Result<Option<(Wire, Login)>, WireError> {
    let Some((mut wire, parameters)) = start(wire, postgres).await? else {
        return Ok(None);
    };
    let login = ask_token(&mut wire, &postgres.node, parameters).await?;
    Ok(login.map(|login| (wire, login)))
}

type Parameters = Vec<(String, String)>;

/// What the client says first, behind encryption if it wants some. None: there is to be no session.
async fn start(
    mut wire: Wire,
    postgres: &Postgres,
) -> Result<Option<(Wire, Parameters)>, WireError> {
    let tls = postgres.tls.as_ref();
    if wire.begins_with_tls().await? {
        let Some(tls) = tls else {
            return Ok(None);
        };
        wire = wire.encrypted(&tls.acceptor().await).await?;
        if !wire.is_named_in_handshake() {
            // It may take this for another protocol.
            return Ok(None);
        }
    }
    let mut requests = 0;
    loop {
        match wire.startup().await? {
            message @ (Startup::WantsTls | Startup::WantsGss) => {
                requests += 1;
                if requests > ENCRYPTION_REQUESTS_MAX {
                    return Ok(None);
                }
                let wants_tls = matches!(message, Startup::WantsTls);
                let given = tls.filter(|_| wants_tls && !wire.is_encrypted());
                wire.encryption(given.is_some());
                wire.flush().await?;
                if let Some(tls) = given {
                    wire = wire.encrypted(&tls.acceptor().await).await?;
                }
            }
            Startup::Cancel(key) => {
                postgres.cancels.cancel(key);
                return Ok(None);
            }
            Startup::Parameters(_)
                if postgres.node.config.postgres.require_tls && !wire.is_encrypted() =>
            {
                let text =
                    "this server takes encrypted connections only: connect with sslmode=require";
                refuse(&mut wire, &Failure::new(state::INVALID_AUTHORIZATION, text)).await?;
                return Ok(None);
            }
            Startup::Parameters(parameters) => return Ok(Some((wire, parameters))),
        }
    }
}

async fn ask_token(
    wire: &mut Wire,
    node: &Node,
    parameters: Parameters,
) -> Result<Option<Login>, WireError> {
    let parameter = |name: &str| {
        let found = parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let names = Names {
        user: parameter("user"),
        database: parameter("database"),
        application_name: parameter("application_name"),
    };
    if names.database.is_empty() {
        let failure = Failure::new(state::INTERNAL, "Database name is required");
        return refuse(wire, &failure).await;
    }
    wire.authentication(CLEARTEXT_PASSWORD);
    wire.flush().await?;
    let Some(message) = wire.read_password().await? else {
        return Ok(None);
    };
    let password = Body(&message).text()?.to_owned();
    let caller = match node.authority.validate(&password).await {
        Ok(caller) => caller,
        // Neither the answer nor a log has the token.
        Err(error) => {
            let failure = Failure::new(state::INVALID_PASSWORD, error.to_string());
            return refuse(wire, &failure).await;
        }
    };
    let name = NameOrIdentity::parse(&names.database).ok();
    let name = name.filter(|name| name.name().is_some() && node.resolve(name).is_ok());
    let Some(database) = name else {
        return refuse(wire, &no_such_database(&names.database)).await;
    };
    wire.authentication(OK);
    for name in [
        "server_version",
        "server_encoding",
        "client_encoding",
        "DateStyle",
        "IntervalStyle",
        "TimeZone",
        "integer_datetimes",
        "in_hot_standby",
        "search_path",
        "is_superuser",
        "default_transaction_read_only",
        "standard_conforming_strings",
    ] {
        let value = setting(&name.to_lowercase()).expect("each is a setting");
        wire.parameter(name, value);
    }
    if !names.application_name.is_empty() {
        wire.parameter("application_name", &names.application_name);
    }
    wire.parameter("session_authorization", &names.user);
    Ok(Some(Login {
        expires_at: caller.claims.expires_at,
        caller: Caller {
            identity: caller.identity,
            // Looked up for each statement.
            rights: Rights::default(),
            jwt_payload: caller.jwt_payload,
        },
        database,
        names,
    }))
}

pub(super) fn no_such_database(name: &str) -> Failure {
    let message = format!("database \"{name}\" does not exist");
    Failure::new(state::NO_SUCH_DATABASE, message)
}

async fn refuse(wire: &mut Wire, failure: &Failure) -> Result<Option<Login>, WireError> {
    wire.failure(failure, true);
    wire.flush().await?;
    wire.close().await;
    Ok(None)
}
