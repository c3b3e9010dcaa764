//! Tests: what a publish, a reset and a deletion leave behind when they fail; most of all when the control database fails in the
//! middle of its change, and cannot be read again for some time. And that they take turns only while they load.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::Extension;
use lightcone_control::{ControlDb, DatabaseRecord, HostType, NameOrIdentity, Role};
use lightcone_database::{ConnectRequest, Limits, Outgoing};
use lightcone_node::auth::Caller;
use lightcone_node::databases::{limits, Databases, ServerWide};
use lightcone_node::DataDir;
use lightcone_storage::sim::{FaultyDisk, Operation};
use lightcone_types::{ConnectionId, Hash, Identity};
use lightcone_wire::Protocol;

use super::body::SentBody;
use super::path::{DatabasePath, IdentityPath};
use super::query::Query;
use super::route::BodyMax;
use super::{collaborators, owner, pre_publish, publish};
use crate::client_address::Client;
use crate::fake_engine::SLOW_LOAD;
use crate::gateway::{node_for_tests, Gateway};
use crate::publishing::Publisher;
use crate::reply::Reply;

/// Far more than anything here takes.
const SOON: Duration = Duration::from_secs(30);
const OLD: &str = "module old";
const NEW: &str = "module new";

fn uploaded(program: &'static str) -> SentBody {
    SentBody {
        body: Body::from(program),
        max: BodyMax::Program,
    }
}

struct TestServer {
    state: Arc<Gateway>,
    /// Under the control database only.
    disk: FaultyDisk,
    caller: Caller,
    replicas: PathBuf,
    _dir: tempfile::TempDir,
}

impl TestServer {
    fn new() -> TestServer {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut node = node_for_tests(&dir.path().join("of-its-own"));
        let data_dir = DataDir::open(&dir.path().join("data")).expect("opens");
        let (disk, replicas) = (FaultyDisk::default(), data_dir.replicas());
        let control = ControlDb::open_on(disk.storage(), &data_dir.control_directory());
        node.control = Arc::new(control.expect("opens"));
        node.databases = Databases::new(
            data_dir,
            node.control.clone(),
            false,
            crate::fake_engine::engines(),
            Limits::default(),
            ServerWide {
                commons: limits::commons(&node.process, &node.config, None),
                loads: Arc::default(),
                disk: Arc::default(),
                test_time: None,
                series_max: 1,
            },
        );
        let state = Gateway::new(Arc::new(node));
        TestServer {
            caller: state.node.authority.mint_anonymous().expect("a token"),
            state,
            disk,
            replicas,
            _dir: dir,
        }
    }

    async fn publish(&self, identity: Identity, query: &str, program: &'static str) -> Reply {
        self.publish_as(&self.caller, identity, query, program)
            .await
    }

    async fn publish_as(
        &self,
        caller: &Caller,
        identity: Identity,
        query: &str,
        program: &'static str,
    ) -> Reply {
        let client = Client {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_local: true,
        };
        publish::publish(
            State(self.state.clone()),
            DatabasePath(NameOrIdentity::Identity(identity)),
            Query::parse(query),
            HeaderMap::new(),
            Extension(caller.clone()),
            Extension(client),
            uploaded(program),
        )
        .await
    }

    async fn dry_run(&self, identity: Identity, program: &'static str) -> Reply {
        let client = Client {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_local: true,
        };
        pre_publish::pre_publish(
            State(self.state.clone()),
            DatabasePath(NameOrIdentity::Identity(identity)),
            Query::parse("dry_run=true"),
            Extension(self.caller.clone()),
            Extension(client),
            uploaded(program),
        )
        .await
    }

    async fn delete(&self, identity: Identity) -> Reply {
        owner::delete(
            State(self.state.clone()),
            DatabasePath(NameOrIdentity::Identity(identity)),
            Extension(self.caller.clone()),
        )
        .await
    }

    /// The program that runs, once the database is opened.
    async fn program(&self, identity: Identity) -> Option<Hash> {
        let record = self.state.node.control.database(&identity)?;
        let running = self.state.node.databases.get(&record).await.ok()?;
        Some(running.handle.program_hash())
    }

    fn replicas(&self) -> usize {
        std::fs::read_dir(&self.replicas).expect("listed").count()
    }
}

fn hash(program: &str) -> Option<Hash> {
    Some(Hash::keccak256(program.as_bytes()))
}

const DATABASE: Identity = Identity::from_le_bytes([5; 32]);

/// Writes of the change before, the number of the new replica, in both copies.
const WRITES_BEFORE: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_keeps_both_replicas_until_it_is_known() {
    for (write, program) in [(WRITES_BEFORE, OLD), (WRITES_BEFORE + 1, NEW)] {
        let server = TestServer::new();
        server.publish(DATABASE, "", OLD).await.expect("created");
        server.disk.fail(Operation::Write, write, true);
        let reset = server.publish(DATABASE, "clear=true", NEW).await;
        let text = format!("{:?}", reset.expect_err("the outcome is unknown"));
        assert!(text.contains("LC0549"), "{text}");
        // Neither runs: what the wrong one acknowledged would be lost.
        assert!(server.state.node.databases.running(&DATABASE).is_none());
        assert_eq!(server.program(DATABASE).await, None);
        assert_eq!(server.replicas(), 2);
        server.disk.mend();
        assert_eq!(server.program(DATABASE).await, hash(program));
        // The other one is an orphan for the next start.
        assert_eq!(server.replicas(), 2);
        let reset = server.publish(DATABASE, "clear=true", "module more").await;
        reset.expect("it works again");
        assert_eq!(server.program(DATABASE).await, hash("module more"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_whose_first_copy_is_written_is_made() {
    let server = TestServer::new();
    server.publish(DATABASE, "", OLD).await.expect("created");
    server.disk.fail(Operation::Write, WRITES_BEFORE + 1, false);
    let reset = server.publish(DATABASE, "clear=true", NEW).await;
    reset.expect("it is on the disk");
    assert_eq!(server.program(DATABASE).await, hash(NEW));
    assert_eq!(server.replicas(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_database_is_kept_until_it_is_known() {
    for (write, is_there) in [(WRITES_BEFORE, false), (WRITES_BEFORE + 1, true)] {
        let server = TestServer::new();
        server.disk.fail(Operation::Write, write, true);
        let created = server.publish(DATABASE, "", OLD).await;
        created.expect_err("the outcome is unknown");
        assert_eq!(server.replicas(), 1);
        server.disk.mend();
        server.state.node.control.settle().expect("read again");
        let expected = is_there.then(|| Hash::keccak256(OLD.as_bytes()));
        assert_eq!(server.program(DATABASE).await, expected);
        server.publish(DATABASE, "", NEW).await.expect("published");
        assert_eq!(server.program(DATABASE).await, hash(NEW));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_stops_the_database_until_it_is_known() {
    for (write, is_there) in [(0, true), (1, false)] {
        let server = TestServer::new();
        server.publish(DATABASE, "", OLD).await.expect("created");
        server.disk.fail(Operation::Write, write, true);
        server
            .delete(DATABASE)
            .await
            .expect_err("the outcome is unknown");
        assert!(server.state.node.databases.running(&DATABASE).is_none());
        assert_eq!(server.program(DATABASE).await, None);
        assert_eq!(server.replicas(), 1);
        server.disk.mend();
        let expected = is_there.then(|| Hash::keccak256(OLD.as_bytes()));
        assert_eq!(server.program(DATABASE).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_finds_what_was_unknown() {
    let server = TestServer::new();
    server.disk.fail(Operation::Write, WRITES_BEFORE + 1, true);
    let created = server.publish(DATABASE, "", OLD).await;
    created.expect_err("the outcome is unknown");
    server
        .delete(DATABASE)
        .await
        .expect_err("the outcome is unknown");
    server.disk.mend();
    server.delete(DATABASE).await.expect("deleted");
    assert_eq!(server.program(DATABASE).await, None);
    assert_eq!(server.replicas(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_there_already_is_left_alone() {
    let server = TestServer::new();
    let file = server.replicas.join("1/log");
    std::fs::create_dir(server.replicas.join("1")).expect("created");
    std::fs::write(&file, "of another").expect("written");
    let refused = server.publish(DATABASE, "", OLD).await;
    let text = format!("{:?}", refused.expect_err("the number is taken"));
    assert!(text.contains("LC0328"), "{text}");
    assert!(file.exists());
    let again = server.publish(DATABASE, "", OLD).await;
    again.expect("with another number");
    assert_eq!(server.replicas(), 2);
    // What a failed publish has made itself goes.
    let refused = server.publish(Identity::ZERO, "", "module fail-init").await;
    refused.expect_err("init fails");
    assert_eq!(server.replicas(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_that_waits_for_others_has_no_turn() {
    let server = Arc::new(TestServer::new());
    let held = server.state.node.databases.lock(&DATABASE).await;
    let publishing = server.clone();
    let publish = tokio::spawn(async move { publishing.publish(DATABASE, "", OLD).await });
    until(|| server.replicas() > 0).await;
    // All that one owner may have.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut turns = Vec::new();
    for _ in 1..processors.max(2) {
        let owner = Publisher {
            owner: server.caller.identity,
            address: None,
        };
        let turn = server.state.publish_turn(owner, 0);
        let turn = tokio::time::timeout(SOON, turn).await;
        turns.push(turn.expect("in time").expect("a turn"));
    }
    assert!(!publish.is_finished());
    drop((held, turns));
    publish.await.expect("no panic").expect("published");
}

/// Who was let in for another owner's database gets none of his own under its identity when it is deleted meanwhile, also where it is
/// forgotten whose it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_publish_for_another_makes_nothing_where_that_was() {
    let server = Arc::new(TestServer::new());
    server.publish(DATABASE, "", OLD).await.expect("created");
    let publisher = server
        .state
        .node
        .authority
        .mint_anonymous()
        .expect("a token");
    let control = &server.state.node.control;
    let role = (&DATABASE, &publisher.identity);
    let given = control.set_role(role, Some(Role::Publisher), |_, _| true);
    given.expect("a role");
    control.fill_founders();
    // All turns are others'.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut turns = Vec::new();
    for number in 0..processors.max(2) {
        let owner = Publisher {
            owner: Identity::from_le_bytes([number as u8 + 100; 32]),
            address: None,
        };
        turns.push(server.state.publish_turn(owner, 0).await.expect("a turn"));
    }
    let publishing = server.clone();
    let publish =
        tokio::spawn(async move { publishing.publish_as(&publisher, DATABASE, "", NEW).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!publish.is_finished());
    server.delete(DATABASE).await.expect("deleted");
    drop(turns);
    let refused = publish.await.expect("no panic");
    let text = format!("{:?}", refused.expect_err("it is not his"));
    assert!(text.contains("LC0145"), "{text}");
    assert_eq!(server.program(DATABASE).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_is_given_up_goes_on() {
    let server = TestServer::new();
    let created = server.publish(DATABASE, "", "module slow-load").await;
    created.expect("created");
    server.state.node.databases.suspend(&DATABASE).await;
    let opened = tokio::time::timeout(SLOW_LOAD / 4, server.program(DATABASE)).await;
    opened.expect_err("not yet open");
    until(|| server.state.node.databases.running(&DATABASE).is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_started_database_that_is_not_taken_ends() {
    let server = TestServer::new();
    let record = DatabaseRecord {
        id: 0,
        identity: DATABASE,
        owner: server.caller.identity,
        host_type: HostType::Wasm,
        initial_program: Hash::keccak256(OLD.as_bytes()),
        replica_id: 1,
    };
    let program = OLD.as_bytes().to_vec().into();
    let started = server
        .state
        .node
        .databases
        .create(&record, program, Default::default())
        .await;
    drop(started.expect("created"));
    server
        .state
        .node
        .control
        .insert_database(record, lightcone_types::Due::Never)
        .expect("known");
    // The first attempts may find its log in use, and the next ones wait for a while.
    let opened = async {
        while server.program(DATABASE).await.is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let opened = tokio::time::timeout(SOON, opened).await;
    opened.expect("its log is free");
}

/// No caller keeps the rights of a role that may have been taken away.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_be_gone_ends_its_connections() {
    for (write, is_reader) in [(0, true), (1, false)] {
        let server = TestServer::new();
        server.publish(DATABASE, "", OLD).await.expect("created");
        let reader = server
            .state
            .node
            .authority
            .mint_anonymous()
            .expect("a token");
        let reader = reader.identity;
        let control = &server.state.node.control;
        let given = control.set_role((&DATABASE, &reader), Some(Role::Reader), |_, _| true);
        given.expect("a role");
        let record = control.database(&DATABASE).expect("there");
        let running = server
            .state
            .node
            .databases
            .get(&record)
            .await
            .expect("opens");
        let request = ConnectRequest {
            identity: reader,
            rights: server.state.node.rights(&record, &reader),
            connection_id: ConnectionId(7),
            session_id: None,
            session_grace: Duration::ZERO,
            jwt_payload: "{}".into(),
            confirmed: true,
            protocol: Protocol::V3,
            token: "".into(),
        };
        let mut connection = running.handle.connect(request).await.expect("connects");
        server.disk.fail(Operation::Write, write, true);
        let taken = collaborators::delete(
            State(server.state.clone()),
            DatabasePath(NameOrIdentity::Identity(DATABASE)),
            IdentityPath(reader),
            Extension(server.caller.clone()),
        );
        let text = format!("{:?}", taken.await.expect_err("the outcome is unknown"));
        assert!(text.contains("LC0549"), "{text}");
        let closed =
            async { while let Some(Outgoing::Messages(_)) = connection.outgoing.recv().await {} };
        let closed = tokio::time::timeout(SOON, closed).await;
        closed.expect("the connection ends");
        server.disk.mend();
        control.settle().expect("read again");
        let role = control.role(&DATABASE, &reader);
        assert_eq!(role.is_some(), is_reader);
    }
}

/// A caller that waits for its turn to try a migration keeps no other from publishing.
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_take_no_turns_of_publishes() {
    let server = Arc::new(TestServer::new());
    server.publish(DATABASE, "", OLD).await.expect("created");
    let owner = Publisher {
        owner: server.caller.identity,
        address: None,
    };
    // One of an owner at a time: all others wait behind this one.
    let held = server.state.rehearsal_turn(owner).await.expect("a turn");
    let dry_runs: Vec<_> = (0..8)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.dry_run(DATABASE, "module level").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(dry_runs.iter().all(|dry_run| !dry_run.is_finished()));
    let published = server.publish(Identity::ZERO, "", NEW);
    let published = tokio::time::timeout(SOON, published).await;
    published.expect("in time").expect("published");
    drop(held);
    for dry_run in dry_runs {
        dry_run.await.expect("no panic").expect("its turn comes");
    }
}

/// Who is gone while he waits for his turn to try a migration leaves his place to others.
#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_that_are_given_up_wait_no_more() {
    let server = Arc::new(TestServer::new());
    server.publish(DATABASE, "", OLD).await.expect("created");
    let owner = Publisher {
        owner: server.caller.identity,
        address: None,
    };
    let _held = server.state.rehearsal_turn(owner).await.expect("a turn");
    let places = server
        .state
        .node
        .config
        .limits
        .publishes_waiting_per_owner_max;
    let dry_runs = (0..=places).map(|_| {
        let server = server.clone();
        tokio::spawn(async move { server.dry_run(DATABASE, "module level").await })
    });
    let dry_runs: Vec<_> = dry_runs.collect();
    // One is refused: all others wait.
    until(|| dry_runs.iter().any(tokio::task::JoinHandle::is_finished)).await;
    dry_runs.iter().for_each(tokio::task::JoinHandle::abort);
    let asks_again = async {
        loop {
            // It waits only where there is a place.
            let turn = server.state.rehearsal_turn(owner);
            match tokio::time::timeout(Duration::from_millis(10), turn).await {
                Ok(Err(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                _ => break,
            }
        }
    };
    let asked = tokio::time::timeout(SOON, asks_again).await;
    asked.expect("there is a place");
}

/// Waits for something that other threads do.
async fn until(is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(SOON, so).await.expect("in time");
}
