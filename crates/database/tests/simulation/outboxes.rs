//! Messages of an outbox table between two databases of one world, with a module of the published library in WebAssembly: each is applied
//! once, in the order in which it was sent, whatever is lost on the way and however often both are killed.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use lightcone_database::{
    CallArgs, Carried, Carrier, DatabaseHandle, DatabaseOptions, HostKind, JsonRows, Limits,
    Message,
};
use lightcone_host::ModuleEngine;
use lightcone_storage::sim::SimStorage;
use lightcone_types::Identity;
use serde_json::json;

use super::clients::Client;
use super::common::{caller, module, OWNER};
use super::life::options;
use super::real::engine;
use super::world::{poll, Simulated};

const RECEIVER: Identity = Identity::from_le_bytes([5; 32]);
const RECEIVED_IN: &str = "/dev/null/receiver";
const SEEDS: u64 = 2;
const LIVES: usize = 3;
const STEPS: usize = 1_500;

/// The way to the receiver. Some messages are lost, and some answers.
#[derive(Clone, Debug)]
struct Post {
    world: Simulated,
    to: Arc<Mutex<Option<Handle>>>,
}

#[derive(Clone)]
struct Handle(DatabaseHandle);

impl std::fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the receiver")
    }
}

impl Carrier for Post {
    fn carry(&self, message: Message) -> Pin<Box<dyn Future<Output = Carried> + Send>> {
        let Post { world, to } = self.clone();
        Box::pin(async move {
            world.pause(world.draw(2_000) as u64).await;
            let receiver = to.lock().expect("whole").clone();
            let Some(Handle(receiver)) = receiver.filter(|_| !world.once_in(4)) else {
                return Carried::lost("it is lost on its way");
            };
            match receiver.receive(message).await {
                Ok(answer) if !world.once_in(4) => Carried {
                    answer: Ok(answer),
                    is_settled: true,
                },
                Ok(_) => Carried::lost("its answer is lost"),
                Err(error) => Carried::lost(format!("{error:?}")),
            }
        })
    }
}

/// Numbers that were sent: tried, and acknowledged.
type Sent = Arc<Mutex<(u64, Vec<u64>)>>;

async fn send(database: DatabaseHandle, sent: Sent) {
    let to = json!({ "__identity__": format!("0x{}", RECEIVER.to_hex()) });
    while database.is_running() {
        let number = {
            let mut sent = sent.lock().expect("whole");
            sent.0 += 1;
            sent.0
        };
        let text = if number.is_multiple_of(5) {
            "refuse"
        } else {
            "text"
        };
        let args = CallArgs::Json(json!([to, number, text]).to_string());
        let called = database.call(caller(OWNER), "send", args).await;
        if called.is_ok() {
            sent.lock().expect("whole").1.push(number);
        }
    }
}

fn numbers(world: &Simulated, database: &DatabaseHandle, query: &str) -> Vec<u64> {
    let asked = database.sql(caller(OWNER), query.to_owned(), true, JsonRows::default());
    let found = world.until("rows", asked).expect("rows").text();
    let mut rows: Vec<(u64, u64)> = serde_json::from_str(&found).expect("numbers");
    rows.sort_unstable();
    rows.into_iter().map(|(_, number)| number).collect()
}

/// All that was sent arrives, but for what is refused, and its sender hears of each once.
fn check(world: &Simulated, [sender, receiver]: [&DatabaseHandle; 2], sent: &Sent) {
    for _ in 0..1_000 {
        if numbers(world, sender, "SELECT id, number FROM parcels").is_empty() {
            break;
        }
        world.until("a while", world.pause(1_000_000));
    }
    let waiting = numbers(world, sender, "SELECT id, number FROM parcels");
    assert_eq!(waiting, [0; 0], "they are delivered");
    let arrived = numbers(world, receiver, "SELECT id, number FROM arrivals");
    let outcomes = numbers(world, sender, "SELECT id, number FROM outcomes");
    world.world().note((&arrived, &outcomes));
    let is_rising = |numbers: &[u64]| numbers.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(
        is_rising(&arrived) && is_rising(&outcomes),
        "{arrived:?}, {outcomes:?}"
    );
    let expected = outcomes.iter().filter(|number| !number.is_multiple_of(5));
    assert_eq!(arrived, expected.copied().collect::<Vec<_>>());
    for number in &sent.lock().expect("whole").1 {
        assert!(outcomes.contains(number), "{number} is lost");
    }
}

fn simulate(seed: u64, engine: &Arc<dyn ModuleEngine>) -> u64 {
    let world = Simulated::new(seed, false);
    let mut storage = SimStorage::new(seed);
    let limits = Limits {
        log_segment_bytes: 4_096,
        log_preallocate: false,
        snapshot_log_bytes: 4_000,
        ..Limits::default()
    };
    let post = Post {
        world: world.clone(),
        to: Arc::default(),
    };
    let of_both = |storage: &SimStorage| {
        let sender = options(&world, storage, &limits, engine.clone());
        sender.commons.set_carrier(Arc::new(post.clone()));
        let receiver = DatabaseOptions {
            directory: Path::new(RECEIVED_IN).to_owned(),
            identity: RECEIVER,
            ..options(&world, storage, &limits, engine.clone())
        };
        [sender, receiver]
    };
    let program = module("outbox");
    let mut both = of_both(&storage).map(|options| {
        let made = DatabaseHandle::create(options, program.clone(), HostKind::Wasm);
        made.expect("the module is valid")
    });
    let sent = Sent::default();
    for _ in 0..LIVES {
        *post.to.lock().expect("whole") = Some(Handle(both[1].clone()));
        let mut client: Client = Box::pin(send(both[0].clone(), sent.clone()));
        for _ in 0..world.draw(STEPS) {
            match world.once_in(8) {
                true => drop(poll(&mut client)),
                false => world.step(),
            }
        }
        drop(client);
        *post.to.lock().expect("whole") = None;
        drop(both);
        world.kill();
        storage = storage.crash(world.draw(usize::MAX) as u64);
        both = of_both(&storage).map(|options| DatabaseHandle::open(options).expect("it opens"));
        *post.to.lock().expect("whole") = Some(Handle(both[1].clone()));
        check(&world, [&both[0], &both[1]], &sent);
    }
    *post.to.lock().expect("whole") = None;
    drop(both);
    world.kill();
    let trace = world.world().trace();
    trace
}

#[test]
fn messages_between_databases_are_applied_once() {
    let (engine, _cache) = engine();
    for seed in 0..SEEDS {
        assert_eq!(simulate(seed, &engine), simulate(seed, &engine), "{seed}");
    }
}
