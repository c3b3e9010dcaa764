//! Rows of outbox tables are numbered when they are committed, and their numbers are freed in ways that no receiver can mistake.

use crate::common::*;
use crate::definitions::{definition, Kind, Table, Tables};
use lightcone_engine::{
    CommitOutput, Datastore, DatastoreError as E, MessageResult, MigrationWork, OutboundMessage,
    ResultStatus,
};
use lightcone_schema::{plan, ColumnDef, OutboxDef, TableDef};
use lightcone_types::bsatn::Encode;
use lightcone_types::{
    AlgebraicType as T, ColId, Hash, Identity, SpecialProduct, TableId, Timestamp,
};

fn outbox() -> TableDef {
    let columns = [
        ("id", T::U64),
        ("target", SpecialProduct::Identity.into()),
        ("text", T::String),
    ];
    let def = table("parcels", &columns).btree(&[0], true).primary_key(0);
    let mut def = def.sequence(0).done();
    def.outbox = Some(OutboxDef {
        remote_reducer: "receive".to_owned(),
        target_column: ColId(1),
        arg_columns: vec![ColId(2), ColId(0)],
        on_result: None,
        signature_hash: Hash::ZERO,
    });
    def
}

struct World {
    datastore: Datastore,
    table: TableId,
}

const TARGET: Identity = Identity::from_le_bytes([7; 32]);

impl World {
    fn new() -> World {
        let mut def = module(Vec::new());
        def.tables.push(outbox());
        let mut world = World {
            datastore: creating(&def),
            table: TableId(0),
        };
        world.commit();
        let id = world.datastore.table_id_from_name("parcels");
        world.table = id.expect("the table");
        world
    }

    /// The streams that something happened to.
    fn commit(&mut self) -> Vec<u64> {
        let mut output = CommitOutput::default();
        self.datastore.commit(&mut output).expect("it fits");
        output.outbound
    }

    fn insert(&mut self, id: u64, target: Identity, text: &str) {
        let row = (id, target, text).to_vec();
        let inserted = self.datastore.insert(self.table, &row, &mut Vec::new());
        inserted.expect("inserted");
    }

    fn delete(&mut self, id: u64) {
        let index = self
            .datastore
            .schema(self.table)
            .expect("the table")
            .indexes[0]
            .id;
        let deleted = self.datastore.delete_by_index_point(index, &id.to_vec());
        assert_eq!(deleted.expect("deleted"), 1);
    }

    /// One transaction that inserts these, and the stream that they are in.
    fn send(&mut self, ids: impl IntoIterator<Item = u64>) -> u64 {
        self.datastore.begin();
        for id in ids {
            self.insert(id, TARGET, "");
        }
        let streams = self.commit();
        assert_eq!(streams.len(), 1);
        streams[0]
    }

    fn withdraw(&mut self, id: u64) {
        self.datastore.begin();
        self.delete(id);
        self.commit();
    }

    fn head(&self, stream: u64) -> Option<(u64, u64)> {
        let head = self.datastore.outbound_head(stream)?;
        Some((head.id, head.seq))
    }

    fn retire(&mut self, stream: u64) -> OutboundMessage {
        let head = self.datastore.outbound_head(stream).expect("a message");
        let of = self.datastore.outbound_stream(stream).expect("a stream");
        self.datastore.begin();
        self.datastore.retire_outbound(&of, &head).expect("retired");
        self.commit();
        head
    }
}

#[test]
fn rows_are_numbered_in_order_for_each_target() {
    let mut world = World::new();
    let other = Identity::from_le_bytes([8; 32]);
    world.datastore.begin();
    world.insert(30, TARGET, "first");
    world.insert(10, other, "");
    world.insert(20, TARGET, "gone again");
    world.insert(25, TARGET, "second");
    world.delete(20);
    // At the place in memory of the one that went.
    world.insert(5, TARGET, "third");
    let streams = world.commit();
    assert_eq!(streams.len(), 2);
    let stream = streams[0];
    assert_eq!(world.head(streams[1]), Some((10, 1)));
    let row = world
        .datastore
        .outbox_row(world.table, 30)
        .expect("the row")
        .to_vec();
    let arguments = world.datastore.outbox_arguments(world.table, &row);
    assert_eq!(arguments, ("first", 30_u64).to_vec());
    for (id, seq) in [(30, 1), (25, 2), (5, 3)] {
        assert_eq!(world.head(stream), Some((id, seq)));
        world.retire(stream);
        assert!(world.datastore.outbox_row(world.table, id).is_none());
    }
    assert_eq!(world.head(stream), None);
    assert_eq!(world.send([40]), stream, "the stream goes on");
    assert_eq!(world.head(stream), Some((40, 4)));
    let of = world.datastore.outbound_stream(stream).expect("a stream");
    assert_eq!((of.ack_prefix, of.next_seq, of.target), (3, 5, TARGET));
}

#[test]
fn rows_that_are_taken_back_are_no_messages() {
    let mut world = World::new();
    world.datastore.begin();
    world.insert(1, TARGET, "");
    world.datastore.rollback();
    assert_eq!(world.datastore.outbound_count(), 0);
    world.datastore.begin();
    world.insert(1, TARGET, "");
    world.delete(1);
    assert!(world.commit().is_empty());
    // A change of a row is no new message, however it is made.
    let stream = world.send([1]);
    world.datastore.begin();
    world.delete(1);
    world.insert(1, TARGET, "changed");
    assert!(world.commit().is_empty());
    assert_eq!(
        (world.head(stream), world.datastore.outbound_count()),
        (Some((1, 1)), 1)
    );
}

#[test]
fn a_message_that_waits_leaves_no_gap_and_the_first_one_keeps_its_number() {
    let mut world = World::new();
    let stream = world.send(1..=5);
    world.withdraw(3);
    // It may have been sent: no other one gets its number before the receiver says so.
    world.withdraw(1);
    assert_eq!(world.head(stream), Some((2, 2)));
    let of = world.datastore.outbound_stream(stream).expect("a stream");
    world.datastore.begin();
    world.datastore.expect_outbound(&of, 1).expect("expected");
    world.commit();
    assert_eq!(world.head(stream), Some((2, 1)));
    world.retire(stream);
    assert_eq!(world.head(stream), Some((4, 2)));
    world.withdraw(5);
    world.retire(stream);
    world.send([6]);
    assert_eq!(world.head(stream), Some((6, 3)));
    // A receiver that has lost everything begins anew.
    let of = world.datastore.outbound_stream(stream).expect("a stream");
    assert_eq!(of.ack_prefix, 2);
    world.datastore.begin();
    world.datastore.expect_outbound(&of, 1).expect("expected");
    world.commit();
    assert_eq!(world.head(stream), Some((6, 1)));
    assert_eq!(world.retire(stream).id, 6);
}

#[test]
fn attempts_are_counted_and_what_waits_is_bounded() {
    let mut world = World::new();
    world.datastore.set_outbox_messages_max(2);
    let stream = world.send([1, 2]);
    world.datastore.begin();
    world.insert(3, TARGET, "");
    let refused = world.datastore.commit(&mut CommitOutput::default());
    assert!(matches!(refused, Err(E::OutboxFull { messages_max: 2 })));
    assert!(!world.datastore.in_transaction() && world.datastore.outbound_count() == 2);
    let head = world.datastore.outbound_head(stream).expect("a message");
    world.datastore.begin();
    world
        .datastore
        .note_attempt(&head, "it is away")
        .expect("noted");
    world.commit();
    let head = world.datastore.outbound_head(stream).expect("a message");
    assert_eq!((head.seq, head.retry_count), (1, 1));
    assert_eq!(head.last_transport_error.as_deref(), Some("it is away"));
    assert_eq!(world.datastore.waiting_streams(), [stream]);
}

#[test]
fn results_of_others_are_kept_until_they_are_known() {
    let mut world = World::new();
    let (sender, datastore) = (TARGET, &mut world.datastore);
    let result = |text: &str| MessageResult {
        status: ResultStatus::Error,
        payload: text.as_bytes().to_vec(),
    };
    assert_eq!(datastore.applied_prefix(sender, 7), 0);
    for seq in 1..=3 {
        datastore.begin();
        let recorded = datastore.record_inbound((sender, 7, seq), &result("no"));
        recorded.expect("recorded");
        datastore
            .commit(&mut CommitOutput::default())
            .expect("it fits");
    }
    assert_eq!(datastore.applied_prefix(sender, 7), 3);
    assert_eq!(datastore.applied_prefix(sender, 8), 0);
    assert_eq!(datastore.inbound_result(sender, 7, 2), Some(result("no")));
    assert!(datastore.keeps_results_up_to(sender, 7, 2));
    datastore.begin();
    datastore
        .acknowledge_inbound(sender, 7, 2)
        .expect("deleted");
    datastore
        .commit(&mut CommitOutput::default())
        .expect("it fits");
    assert!(!datastore.keeps_results_up_to(sender, 7, 2));
    assert_eq!(datastore.inbound_result(sender, 7, 2), None);
    assert_eq!(datastore.inbound_result(sender, 7, 3), Some(result("no")));
}

/// As after a restore: targets know the old streams.
#[test]
fn streams_are_renewed_with_what_waits_in_them() {
    let mut world = World::new();
    let stream = world.send(1..=4);
    world.retire(stream);
    world.retire(stream);
    let other = Identity::from_le_bytes([8; 32]);
    world.datastore.begin();
    world.insert(9, other, "");
    let second = world.commit()[0];
    // The clock stands since.
    world.datastore.begin();
    let renewed = world
        .datastore
        .renew_outbound_streams(Timestamp(stream as i64));
    renewed.expect("renewed");
    world.commit();
    let mut streams = world.datastore.waiting_streams();
    streams.sort_by_key(|stream| world.head(*stream));
    assert_eq!(streams.len(), 2);
    assert!(!streams.contains(&stream) && !streams.contains(&second));
    assert_eq!(world.head(streams[0]), Some((3, 3)));
    assert_eq!(world.head(streams[1]), Some((9, 1)));
    assert_eq!((world.head(stream), world.head(second)), (None, None));
    assert_eq!(world.datastore.outbound_count(), 3);
    let of = world
        .datastore
        .outbound_stream(streams[0])
        .expect("a stream");
    assert_eq!((of.target, of.next_seq, of.ack_prefix), (TARGET, 5, 0));
    // The target expects the first one.
    world.datastore.begin();
    world.datastore.expect_outbound(&of, 1).expect("expected");
    world.commit();
    assert_eq!(world.head(streams[0]), Some((3, 1)));
    world.retire(streams[0]);
    assert_eq!(world.head(streams[0]), Some((4, 2)));
    assert_eq!(world.send([6]), streams[0]);
}

/// A column more makes a new table (02 §14.5). What waits stays where it was in its stream, and what comes goes behind it.
#[test]
fn what_waits_moves_to_a_table_that_is_made_anew() {
    let mut world = World::new();
    let stream = world.send(1..=3);
    world.retire(stream);
    let tables = Tables::from([("parcels".to_owned(), Table::new(&[Kind::U32]))]);
    let [mut old, mut new] = [(); 2].map(|()| definition(&tables));
    old.tables[0] = outbox();
    new.tables[0] = outbox();
    new.tables[0].columns.push(ColumnDef {
        name: "note".to_owned(),
        source_name: "note".to_owned(),
        ty: T::U32,
        default: Some(vec![0; 4]),
    });
    let plan = plan(&old, &new).expect("a plan");
    let mut may_go_on = || true;
    let mut work = MigrationWork::new(u64::MAX, &mut may_go_on);
    world.datastore.begin();
    for step in &plan.steps {
        let done = world.datastore.migrate(step, &new, &mut work);
        done.expect("it is possible");
    }
    assert!(world.commit().is_empty(), "nothing is new in any stream");
    let wider = table_id(&world.datastore, "parcels");
    assert_ne!(wider, world.table);
    assert_eq!(world.datastore.outbound_count(), 2);
    world.datastore.begin();
    let row = (4_u64, TARGET, "", 0_u32).to_vec();
    let inserted = world.datastore.insert(wider, &row, &mut Vec::new());
    inserted.expect("inserted");
    assert_eq!(world.commit(), [stream]);
    for expected in [(2, 2), (3, 3), (4, 4)] {
        assert_eq!(world.head(stream), Some(expected));
        world.retire(stream);
    }
    assert_eq!(world.head(stream), None);
    assert!(rows(&world.datastore, wider).is_empty());
}
