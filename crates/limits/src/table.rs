//! The table: every limit that can be configured, once.
//!
//! A limit of [`HostLimits`] or [`DatabaseLimits`] is a field of that struct and of [`Limits`], which is `[limits]` of
//! `config.toml`; one of `server` is a field of [`Limits`] only. Its comment stands above its key in the `config.toml` that the
//! first start writes. `bounds` and `reached` are its row in `docs/limits.md`, in the table of the subject that it is `in`.

use std::time::Duration;

use serde::Deserialize;

use crate::compression::CompressionChoice;
use crate::section::section;

section! {
    /// Bounds on what anyone may use. Every one has a default and can be raised.
    "limits" => pub struct Limits;

    /// What one module instance, and one call in it, may use. Every limit has a name, which is in the error that it causes.
    HostLimits {
        in Calls {
            /// Longest time one reducer call may run, in milliseconds.
            call_ms_max: u64 = 10_000;
                bounds "time of one reducer call, in steps of 10 ms";
                reached "end the call, replace the instance: LC0720, HTTP 402";

            // Start function, `_initialize`, `__preinit__*`, `__setup__` and `__describe_module__`.
            /// Longest time that loading a module may take, in milliseconds.
            load_ms_max: u64 = 10_000;
                bounds "time of all functions of the load phase together";
                reached "refuse the publish: LC0721";

            /// Most memory of one module instance, in bytes.
            memory_bytes_max: usize = 1 << 30;
                bounds "linear memory, or JavaScript heap, of one instance";
                reached "`memory.grow` fails; if the module then traps: LC0722. JavaScript: end the call, LC0722";

            // The thread that calls the module needs this much stack and 256 KiB for the host. An engine may read this once, when
            // it is created.
            /// Stack of one module instance, in bytes.
            stack_bytes_max: usize = 512 << 10;
                bounds "stack of guest code";
                reached "end the call, replace the instance: LC0723. JavaScript: a RangeError, which the module may catch";

            /// Most function table elements of one module instance.
            table_elements_max: usize = 1 << 20;
                bounds "function table elements of one instance";
                reached "`table.grow` fails";

            /// Most row iterators that one call may hold open.
            iterators_max: usize = 65_536;
                bounds "row iterators that a call holds open";
                reached "end the call: LC0724";

            /// Most bytes of rows in the open iterators of one call.
            iterator_bytes_max: usize = 1 << 30;
                bounds "fetched rows in the open iterators of a call; a scan fetches its rows in parts, and the rest \
                    before its table changes";
                reached "end the call: LC0724";

            /// Most byte sources that one call may hold unread.
            sources_max: usize = 65_536;
                bounds "byte sources that a call holds unread";
                reached "end the call: LC0724";

            /// Most bytes of answers to its requests that one call may hold unread, with its arguments.
            source_bytes_max: usize = 64 << 20;
                bounds "bytes in the byte sources that a call holds unread, looked at when an answer to a request comes";
                reached "end the call: LC0724";

            /// Most bytes that a module may write into one sink (error texts, its definition).
            sink_bytes_max: usize = 64 << 20;
                bounds "what a module writes into one sink";
                reached "errno 9";

            /// Most bytes of changes that a procedure may have committed when it begins another transaction.
            procedure_bytes_max: usize = 64 << 20;
                bounds "changes of the transactions of one procedure call, looked at when it opens another one";
                reached "end the call, what was committed stays: LC0724";

            // Calls of others wait meanwhile. The time of the commit is not counted.
            /// Longest time that one transaction of a procedure may hold up the writer, in milliseconds.
            procedure_transaction_ms_max: u64 = 10_000;
                bounds "time of one transaction of a procedure";
                reached "roll it back, end the call: LC0735";

            /// Longest time from the start of a procedure to its end, with all that it waits for, in seconds.
            procedure_seconds_max: u64 = 86_400;
                bounds "time of one procedure with its sleeps and requests";
                reached "end the call, what was committed stays: LC0735";

            /// Most bytes of one outbound request.
            http_request_bytes_max: usize = 8 << 20;
                bounds "method, URL, headers and body of one outbound request, looked at before it is copied";
                reached "the request fails (errno 21)";

            /// Most running console timers of one module instance.
            console_timers_max: usize = 1024;
                bounds "running console timers of one instance";
                reached "end the call: LC0724";

            /// Longest console message in bytes; longer ones are cut.
            console_message_bytes_max: usize = 64 << 10;
                bounds "one console text";
                reached "it is cut, and says so";

            /// Most bytes of console messages of one call.
            console_call_bytes_max: usize = 16 << 20;
                bounds "console records of one call";
                reached "later records are dropped; one record says so, LC0725";
        }
    }
    /// Bounds of one database.
    DatabaseLimits {
        also {
            /// Of its module instances.
            pub host: HostLimits = HostLimits::default();
            /// The messages of `inbox_bytes_max`: `websocket.incoming-queue-length`.
            pub inbox_messages_max: usize = WebSocket::default().incoming_queue_length;
            /// A segment of the log that has reached this size is followed by a new one: `commitlog.max-segment-size`.
            pub log_segment_bytes: u64 = 64 << 20;
            /// Fill segments with zeros ahead of the writes, which makes syncs faster: `commitlog.preallocate-segments`.
            pub log_preallocate: bool = true;
            /// Procedures of a WebAssembly module that compute at a time: `wasm.procedure-instance-pool-size`.
            pub wasm_procedures_running_max: usize = 4;
            /// Threads for procedures of a JavaScript module, whether they compute or wait: `v8.procedure-instance-pool-size`.
            pub js_procedure_threads_max: usize = 16;
        }
        in Calls {
            /// Most bytes of old and new rows that one transaction may touch.
            transaction_bytes_max: usize = 1 << 30;
                bounds "old and new rows of one transaction, with its undo log";
                reached "end the call: LC0702. Never more than `TRANSACTION_BYTES_MAX` (`crates/engine/src/transaction.rs`), \
                    so that the record fits a frame of the log";
        }
        in Calls {
            /// Most procedures and HTTP handlers of a database that run, wait, or wait for their turn.
            procedures_max: usize = 2_048;
                bounds "procedures and HTTP handlers of one database that are under way; one caller has no more of them than \
                    are left for all others";
                reached "refuse the call: LC0736";

            /// Most bytes of their arguments and request bodies.
            procedure_arguments_bytes_max: usize = 256 << 20;
                bounds "arguments and request bodies of the procedures and HTTP handlers of one database that are under way; \
                    one caller has no more of them than are left for all others";
                reached "as `limits.procedures-max`: LC0736";

            /// Most memory that all procedures and HTTP handlers of a database hold together, in bytes.
            procedure_memory_bytes_max: usize = 4 << 30;
                bounds "all that the procedures and HTTP handlers of one database hold: linear memory and function \
                    tables, or heap and array buffers; stacks, byte sources and sinks, console timers, row buffers; requests \
                    under way and answers that are not read; results that are not delivered. A heap of V8 begins with 32 MiB of \
                    it and takes more as its limit is raised, its young generation aside";
                reached "`memory.grow` fails, an array buffer is refused, or there is no further instance: the call fails, LC0722";

            /// Most messages of outbox tables of a database that wait for their results.
            outbox_messages_max: u64 = 1_000_000;
                bounds "messages of all outbox tables of one database that wait for their results; 64 of them are under way at a time";
                reached "the transaction that inserts more fails: LC0741";

            /// Most outbound requests of a database's procedures at a time.
            http_requests_max: usize = 64;
                bounds "outbound requests of one database at a time";
                reached "the next one waits, within its own time";

            /// Most bytes of the answer to one outbound request.
            http_response_bytes_max: usize = 16 << 20;
                bounds "headers and body of the answer to one outbound request";
                reached "the request fails (errno 21)";

            /// Most calls that a module has asked to run immediately and that wait.
            immediate_calls_max: usize = 4_096;
                bounds "calls that wait of `volatile_nonatomic_schedule_immediate`";
                reached "end the call that asks for another one: LC0724";

            /// Most bytes of their arguments.
            immediate_bytes_max: usize = 16 << 20;
                bounds "arguments of the calls that wait of `volatile_nonatomic_schedule_immediate`";
                reached "end the call that asks for another one: LC0724";
        }
        in Queries {
            /// Most subscribed query sets of one connection.
            query_sets_max: usize = 4096;
                bounds "live query sets of one connection";
                reached "refuse: `SubscriptionError`, LC0704";

            /// Most queries of one query set.
            queries_per_set_max: usize = 4096;
                bounds "queries in one `Subscribe`";
                reached "refuse: `SubscriptionError`, LC0703";

            /// Most queries in all query sets of one connection.
            queries_per_connection_max: usize = 16_384;
                bounds "queries in all query sets of one connection";
                reached "refuse: `SubscriptionError`, LC0705";

            /// Most steps, of a few nanoseconds each, that checking one changed row against the queries of one connection may take.
            query_steps_per_connection_max: usize = 32_768;
                bounds "steps that checking one changed row against the queries of one connection takes at most: \
                    `QUERY_STEPS` for each query, and one for each comparison of its condition. A query that only \
                    needs one value in a column is found by it and takes none";
                reached "refuse: `SubscriptionError`, LC0710";

            /// The same of the different queries of all connections over one table.
            query_steps_per_table_max: usize = 524_288;
                bounds "the same of the different queries of all connections that one changed row of a table meets \
                    together: those that need the same value in a column, and those that need none. Each window that a source \
                    of its rows shares with others, by `WINDOW_STEPS` (`crates/live/src/query_load.rs`), is 16";
                reached "refuse: `SubscriptionError`, LC0711; not a connection that has little: see `MODEST_QUERIES_MAX`";

            /// Most instances of views that are kept up to date: one of each anonymous view, one for each identity that looks at another.
            view_instances_max: usize = 100_000;
                bounds "instances of views whose rows are kept";
                reached "an unused one goes; if all are used, refuse: LC0715";

            /// Most instances of one view with parameters: one for each list of arguments, and each identity if it depends on who looks.
            view_instances_per_view_max: usize = 20_000;
                bounds "instances of one view with parameters whose rows are kept";
                reached "an unused one of the view goes; if all are used, refuse: LC0715";

            /// Most queries on views with arguments that one connection may have in its subscriptions, or one request over HTTP.
            view_instances_per_connection_max: usize = 32;
                bounds "queries on views with arguments of one connection's subscriptions, each of which has an \
                    instance kept up to date, and of one request over HTTP";
                reached "refuse: `SubscriptionError`, LC0715";

            /// Longest time that evaluating one instance of a view may take, in milliseconds.
            view_ms_max: u64 = 1000;
                bounds "time of one call of a view, in steps of 10 ms";
                reached "end the call; the view's last rows stand, and its subscribers are told: LC0331";

            /// Most bytes of rows of one instance of a view.
            view_bytes_max: usize = 16 << 20;
                bounds "rows of one instance of a view, with what is kept to bring results of aggregates up to date";
                reached "the view's last rows stand, and its subscribers are told: LC0331";

            /// Most bytes of rows of all instances of views together.
            views_bytes_max: usize = 1 << 30;
                bounds "rows of all instances of views, with what is kept to bring them up to date: a new one is made \
                    while they have no more; those that are there may grow as `view-bytes-max` lets them";
                reached "unused instances go, the oldest first; if all are used, refuse a new one: LC0715";

            /// Longest time that one SQL statement may take to change rows.
            sql_write_time_max: Duration = Duration::from_secs(10);
                bounds "time of one `INSERT`, `UPDATE`, `DELETE` or `SET`, which the writer does nothing else in; looked \
                    at after every `ROWS_PER_LOOK` rows (`crates/database/src/writer/statements.rs`)";
                reached "undo the statement: LC0713. The bytes that it changes are those of a transaction, LC0702";

            /// Longest time that changing the tables of a database may take when a module is published.
            migration_time_max: Duration = Duration::from_secs(300);
                bounds "time of all steps of a migration together, with its function, in which calls of that database wait; looked \
                    at before each step, after every `TICK_ROWS` rows (`crates/table/src/table/alter.rs`), and every 10 ms of the function";
                reached "undo the migration, refuse the publish: LC0228";

            /// Longest time that functions for rows may hold up one transaction.
            backfill_transaction_time_max: Duration = Duration::from_millis(500);
                bounds "time of the functions for rows (`__migrate_…`) in one transaction of the running module; \
                    a call that is too long is ended within some 20 ms of it. One call in a batch may take this, or a second";
                reached "end the backfill, undo what it made; the transaction is committed: LC0249";

            /// How long a batch of a backfill takes, about.
            backfill_batch_time: Duration = Duration::from_millis(1);
                bounds "time of one batch of a backfill, in which calls of that database wait; looked at after each row";
                reached "the batch is committed, and the next one waits for its turn";

            /// Share of the writer's time that a backfill takes, in percent.
            backfill_share_percent: usize = 20;
                bounds "time of all batches of a backfill, of that of the writer";
                reached "the next batch waits";

            /// Most bytes that it may copy or put into indexes.
            migration_bytes_max: u64 = 8 << 30;
                bounds "tables that a migration copies, with `INDEX_BYTES_PER_ROW` (`crates/engine/src/migration/work.rs`) for \
                    each row of an index that it builds, or of a set of rows where no index is unique; `publish --dry-run` has one such bound for its copy and the steps";
                reached "undo the migration, refuse the publish: LC0229";
        }
        in Storage {
            /// A snapshot is written after so many bytes of log, if they are also `snapshot-log-percent` of the database.
            snapshot_log_bytes: u64 = 256 << 20;
                bounds "log written since the last snapshot, or since the start";
                reached "a snapshot is written beside the writer, once the next limit is reached too";

            /// So much log, in percent of the size of the database when the last snapshot was written: a large one is not written
            /// whole again and again.
            snapshot_log_percent: u64 = 25;
                bounds "the same, in percent of the bytes of all pages when the last snapshot was written, or at the start; the first \
                    `SMALL_BYTES` (`crates/database/src/snapshot.rs`), 16 MiB, do not count";
                reached "as above. What the next start replays is at most as much, and what comes while the snapshot is written";

            /// Most bytes of pages that the writer copies to change them while a snapshot is written; beyond it, the database waits.
            snapshot_copied_bytes_max: u64 = 1 << 30;
                bounds "each database, `SNAPSHOTS_AT_ONCE_MAX` of them at a time: pages as they were, which the writer has copied to change \
                    them while a snapshot is written; these are written first. What one round copies comes on top. Pages of rows that \
                    were deleted count only as far as there are more bytes of pages, with them, than when the snapshot was begun";
                reached "wait: the writer takes no input until some are written, so that a database of which all changes goes on as fast as the disk writes pages";

            /// Snapshots that are kept; older ones are removed, with the log before them.
            snapshots_kept: usize = 2;
                bounds "snapshots";
                reached "older ones go, and, when so many are there, the log before the oldest one that is kept";

            /// The state at every moment of so long a time is kept: snapshots, and the log behind them.
            history_kept_for: Duration = Duration::ZERO;
                bounds "time before the newest snapshot; at least so much of the history of a database stays readable";
                reached "snapshots that are older go with the log before them, but for the newest of these";

            /// Whether the log is kept until a backup has it.
            history_kept_until_backed_up: bool = false;
                bounds "log behind the end of the last complete backup (`spacetime backup create`)";
                reached "once a backup has it, it goes with the next snapshot";

            /// Most bytes of both, beside what recovery needs.
            history_bytes_max: u64 = 8 << 30;
                bounds "snapshots and log of a database that are kept for one of these two reasons alone; none may be where the disk has no \
                    room for the pages of the next snapshot and the log of two more (`ROOM_SNAPSHOTS`, \
                    `crates/database/src/retention.rs`)";
                reached "the oldest history goes, that which a backup has first: LC0560 in the server's log";

            /// Most bytes of one database's module logs; the oldest files go.
            module_log_bytes_max: u64 = 64 << 20;
                bounds "all files of one module's log; a file has an eighth of it";
                reached "the oldest files go";

            /// Most bytes of one of its files.
            module_log_file_bytes_max: u64 = 8 << 20;
                bounds "one file of a module's log, if it is less than an eighth of all";
                reached "the next file begins";

            /// Files of module logs that are older go.
            module_log_days_max: u64 = 365;
                bounds "days for which a module's log is kept; looked at every 20 minutes while the database is open, once the clock has run evenly for an hour";
                reached "older files go";

            /// What one module may log on average, in bytes; what is more is left out and counted.
            module_log_bytes_per_second: u64 = 1 << 20;
                bounds "what one module logs on average; `BURST_SECONDS` (`crates/database/src/module_log/buffer.rs`) times \
                    as much at once";
                reached "records are left out; one line a second says how many, LC0124";

            /// The same in records.
            module_log_records_per_second: u64 = 10_000;
                bounds "the same in records";
                reached "as above, LC0124";
        }
        in Queues {
            /// Bytes of received and unprocessed messages of one database; beyond it, clients are read no further.
            inbox_bytes_max: usize = 256 << 20;
                bounds "the same in bytes";
                reached "wait";

            /// Most log bytes that wait for the disk; beyond it, the database waits.
            log_queue_bytes_max: usize = 64 << 20;
                bounds "log records of a database on their way to the disk";
                reached "wait: the writer takes no input while more wait. What it has at hand then is taken";

            /// Most messages that wait for one slow client; one more ends its connection.
            outgoing_queue_length: usize = 16_384;
                bounds "messages that wait for one client, or for the disk before they may go to it";
                reached "cut";

            /// Most queries that one client has under way, until it has taken the answers; beyond it, it is read no further.
            reads_per_client_max: usize = 8;
                bounds "queries of one connection under way, until it has taken their answers, on whichever thread they are found";
                reached "wait: the connection is read no further";

            /// Most queries of one database that are under way, until there is an answer; beyond it, clients take turns.
            reads_per_database_max: usize = 64;
                bounds "queries of all clients of a database under way, until there is an answer; each may keep a frozen \
                    copy of its tables alive, which costs the pages that are written meanwhile";
                reached "wait: connections take turns, with one query at a time. Queries that the writer answers itself do \
                    not wait, `FIRST_TRIES_MAX` (`crates/database/src/handle.rs`), 16 at a time";

            /// Most streams of the changes of one database that are open.
            change_streams_max: usize = 16;
                bounds "streams of `/v1/database/:n/changes` of one database that are open. Each keeps what its client has not \
                    taken in the client's account, and the log up to `SEGMENTS_PINNED_MAX` (`crates/log/src/feed.rs`), 16 \
                    segments of all readers";
                reached "refuse: LC0514, HTTP 503";

            /// Most bytes that a database keeps for readers of frozen tables, beside what is in use; beyond it, the oldest
            /// readers get an error.
            frozen_bytes_max: usize = 1 << 30;
                bounds "bytes that the writer has copied because a query still reads the table as it was before, of all \
                    queries of a database that read beside the writer";
                reached "refuse: the queries that began to read first get LC0712";

            /// Most rows that one changed row of a table is joined with for subscriptions and views, on average over a transaction; beyond it, the joins with most are ended, or their views evaluated again.
            join_partners_max: usize = 65_536;
                bounds "rows of other tables that are looked at for one changed row, in all joins of \
                    subscriptions and views, on average over a transaction; looking rows of a \
                    third table up counts for four more, asking whether a subquery has a match for one, and trying eight \
                    subscribers for one; a row counts once more for each 32 steps of the conditions it is looked at with. \
                    However many rows a transaction changes, it is no more than `STEPS_MAX` (`crates/live/src/joins/mod.rs`) in all";
                reached "the query sets that have the joins with most of them end: `SubscriptionError`, LC0714; views fail until \
                    they are evaluated again, LC0331; the transaction is not affected";

            /// Rows that subscribed joins and windows may look at in each second; beyond it, the one that is dearest for each of its
            /// clients ends.
            live_rows_per_second: u64 = 4_000_000;
                bounds "rows that are looked at to keep subscribed joins and windows (`ORDER BY … LIMIT`) up to date, over time: \
                    so many more in each second, and `ROWS_PER_CHANGE` for each changed row, for `SECONDS_SAVED_MAX` (`crates/live/src/work.rs`), \
                    4 seconds, at most. Some 100 ns each: this keeps queries of clients from taking the time of reducers. The first \
                    rows of windows and views that a client subscribes to may take as much";
                reached "the query sets with the join or window end that has looked at most rows lately for each connection that has it: \
                    `SubscriptionError`, LC0730; the transaction is not affected. A client whose first rows took more: refuse, LC0730";

            /// Most rows of one subscription with `ORDER BY … LIMIT`, those before it (`OFFSET`) counted.
            window_rows_max: usize = 10_000;
                bounds "rows of one live window (a subscription with `ORDER BY … LIMIT`), those that `OFFSET` leaves out counted";
                reached "refuse: LC0727";

            /// Most different windows (`ORDER BY … LIMIT`, with their parameters) that clients are subscribed to.
            windows_max: usize = 100_000;
                bounds "live windows of a database; one that many clients share counts once";
                reached "refuse: LC0727; of half of them already, unless a connection has few: see `MODEST_WINDOWS_MAX`";

            /// Most bytes of rows that are kept for all windows together.
            windows_bytes_max: usize = 256 << 20;
                bounds "rows of all live windows of a database, with those that are kept behind them; those of views may take as much, and \
                    are evaluated as queries beyond";
                reached "a new one: refuse, LC0727; of half of them already, unless a connection has few. When rows change: the query sets with the largest windows end, LC0728, and hear of nothing more where there are more bytes by `EXCESS_PART` (`crates/live/src/windows/mod.rs`), a quarter";

            /// Most rows that are looked at to fill the windows of a query set, or windows again in one transaction.
            window_rows_read_max: usize = 65_536;
                bounds "rows of tables that are looked at to find those of the new windows of one query set; and, with \
                    `ROWS_READ_PER_CHANGE` and `ROWS_READ_PER_WINDOW` (`crates/live/src/windows/allowance.rs`), 16 more for each \
                    changed row and 16 for each window that is short of rows, those that are looked at in one \
                    transaction because rows have gone from windows. Windows that are short of the same rows look \
                    at them once, and eight rows that are shown to one of them count as one. Those that row-level security \
                    rules join count as well, each condition of a rule that is evaluated on one as one more, and 32 steps of a \
                    condition, or of a query, and 4 KiB of a row that is found, too";
                reached "a new one: refuse, LC0728. When rows change: the query sets with the windows that take most end, LC0728; the transaction is not affected";

            /// Longest time that finding the rows of one query or query set may take.
            read_time_max: Duration = Duration::from_secs(30);
                bounds "time that compiling the queries of one set, and then finding the rows of one query or set, may \
                    take, without the time it waits for its turn";
                reached "refuse: LC0708";

            /// Most bytes that one client has asked for and not yet taken, with its registered queries. An answer that does not fit is
            /// refused; a client that is too slow for its updates loses its connection.
            #[serde(alias = "outgoing-queue-bytes")]
            client_bytes_max: usize = 256 << 20;
                bounds "bytes that one client (a connection, or a request over HTTP) has asked for and not yet taken, \
                    wherever they are: answers under construction, messages that wait for the disk, its queue; and its \
                    registered queries. At most 2 GiB (`CLIENT_BYTES_CEILING`); an older name is \
                    `outgoing-queue-bytes`";
                reached "an answer: refuse, LC0706. Updates of a client that is too slow: cut. One update that does not \
                    fit: Close 1009, LC0709";

            /// Most bytes of one WebSocket message to a client, before it is compressed. The default is `client-bytes-max`. Clients in
            /// C# take 64 MiB.
            outgoing_message_bytes_max: Option<usize> = None, shown as "268435456";
                bounds "one WebSocket message to a client; `limits.client-bytes-max` if it is not set. The rows of a query set \
                    or of a one-off query are one, and the update of one transaction: the protocol has no parts of these. Clients in C# take 67108864 bytes; those in Rust and \
                    TypeScript have no limit of their own. An update of less than a megabyte is not looked at";
                reached "an answer: refuse, LC0706. An update: Close 1009, LC0709";
        }
        in Watching {
            /// Functions of one database that have series of their own in the metrics: those that were there first.
            metrics_functions_max: usize = 50;
                bounds "functions of one database that have series of their own (about 20 each): those that were there first, \
                    and of these in the order of its module";
                reached "the others are added up by kind in series with the name `(other)`; when one goes with an update, \
                    a new one may take its place";

            /// The same of its tables and views.
            metrics_tables_max: usize = 50;
                bounds "tables and views of one database that have series of their own (4 each), in the same order";
                reached "the others are added up in series with the name `(other)`";
        }
    }
    // Of the whole server, which reads them here.
    server {
        in Calls {
            /// Most memory that procedures and HTTP handlers of all databases hold, in percent of the memory that the server may use.
            procedures_memory_percent: u8 = 50;
                bounds "what `limits.procedure-memory-bytes-max` bounds, of all databases of the server together, in percent of the memory \
                    that it may use (the machine's, or its control group's), and `PROCEDURES_BYTES_MIN` \
                    (`crates/node/src/databases/limits.rs`), 1 GiB, at least. The databases of one owner may have as much as is left \
                    for all others";
                reached "as `limits.procedure-memory-bytes-max`: LC0722";
        }
        in Queues {
            /// The same of all clients together, in percent of the memory that the server may use.
            clients_memory_percent: u8 = 25;
                bounds "the same of all clients of the server together, in percent of the memory that it may use (the \
                    machine's, or its control group's). One client may have as much as is left for all others";
                reached "refuse: LC0707, HTTP 503; and the client that holds most is cut, if it holds much more than what \
                    was asked for";
        }
        in Storage {
            /// Most bytes of the server's own log; the oldest files go.
            server_log_bytes_max: u64 = 256 << 20;
                bounds "all files of the server's own log";
                reached "the oldest files go";

            /// How often the server reads all that a recovery would need, to find damage; `"0s"`: never.
            scrub_every: Duration = Duration::from_secs(24 * 60 * 60);
                bounds "time from the begin of one scrub to that of the next one";
                reached "all that a recovery of any database would read is read from the disk, one database after the other; damage: LC0529";

            /// Most bytes a second that it reads.
            scrub_bytes_per_second: u64 = 8 << 20;
                bounds "what the scrub reads in a second";
                reached "it waits; nothing waits for it";

            /// What logs, publishes and snapshots leave free of the disk, for the logs of transactions. The default is this, or an eighth of
            /// a disk of less than 2 GiB.
            disk_reserve_bytes: Option<u64> = None, shown as "268435456";
                bounds "free space of the disk, kept for the logs of transactions; by default an eighth of a disk of less \
                    than 2 GiB";
                reached "publishes that would leave less: 503, LC0125; snapshots wait, or are given up; module logs and the \
                    server's log are not written";
        }
        in Watching {
            /// Databases that have series of their own in the metrics: those that were opened first.
            metrics_databases_max: usize = 100;
                bounds "databases that have series of their own in `/v1/metrics`: those that were opened first";
                reached "the others are added up in series with the name `(other)`";
        }
        in Connections {
            /// Most open connections; more are answered 503.
            connections_max: usize = 20_000;
                bounds "open TCP connections of the server; fewer if the process may not have so many files, see \
                    `RESERVED_PART`";
                reached "refuse: 503, LC0116, LC0329";

            /// Most open connections of one address, other than this machine and trusted proxies; more are answered 503.
            connections_per_address_max: usize = 1024;
                bounds "the same of one address (IPv6: one /64 network); this machine and `network.trusted-proxies` are \
                    not counted";
                reached "refuse: 503, LC0126";

            /// Largest WebSocket message that a client may send, and largest body for an HTTP handler of a module, in bytes.
            message_bytes_max: usize = 32 << 20;
                bounds "one WebSocket message of a client; one body for an HTTP handler of a module";
                reached "cut, without Close; the body: refuse, 413";

            /// Most bytes that all half-received requests and messages may hold together.
            buffered_bytes_max: usize = 1 << 30;
                bounds "half-received requests and messages of all clients together; one may hold as much as is left for \
                    all others";
                reached "refuse: 503, LC0115; WebSocket: Close 1013";

            /// Largest module that may be published, in bytes.
            program_bytes_max: usize = 256 << 20;
                bounds "a module that is uploaded";
                reached "refuse: 413";

            /// Most bytes that modules which are received, or wait for their turn to be published, may hold together.
            upload_bytes_max: usize = 1 << 30;
                bounds "modules that are received, or wait for their turn to be published, together";
                reached "refuse: 503, LC0115";

            /// Most publishes that wait for their turn; more are answered 503.
            publishes_waiting_max: usize = 128;
                bounds "publishes that wait for their turn to load a module; it ends when the module is loaded";
                reached "refuse: 503, LC0123";

            /// The same of one owner; twice as many of one address.
            publishes_waiting_per_owner_max: usize = 16;
                bounds "the same of one owner; twice as many of one address";
                reached "refuse: 503, LC0123";

            /// Modules that cannot be stopped and still run; while there are so many, publishes are answered 503.
            loads_given_up_max: usize = 4;
                bounds "modules that cannot be stopped and still run (LC0121)";
                reached "refuse publishes, of one owner at half as many: 503, LC0122; opening databases: at four times as \
                    many";

            /// Most databases; creating one more is refused.
            databases_max: usize = 10_000;
                bounds "databases of the server";
                reached "refuse: 503, LC0113";

            /// Most databases of one owner, unless `publish.owners` names him.
            databases_per_owner_max: usize = 1_000;
                bounds "the same of one owner; whom `publish.owners` names may have as many as there may be";
                reached "refuse: 403, LC0147";

            /// Most names that all owners have taken for databases; whom `publish.owners` names takes more.
            names_max: usize = 100_000;
                bounds "names of the server that were taken, also those that lead nowhere any more: identities are free, and each \
                    may take some; without a bound for whom `publish.owners` names";
                reached "refuse: 503, LC0159";

            /// Most names that one owner has taken for databases, unless `publish.owners` names him. They stay his.
            names_per_owner_max: usize = 10_000;
                bounds "the same of one owner";
                reached "refuse: 403, LC0148";

            /// Time for a client of PostgreSQL's protocol to log in.
            postgres_login_time_max: Duration = Duration::from_secs(60);
                bounds "the start of a connection of PostgreSQL's protocol, up to the password";
                reached "cut";

            /// Time for a client to send the head of a request, and longest idle time of a kept-alive connection.
            header_timeout: Duration = Duration::from_secs(30);
                bounds "the head of a request; idle time between two requests of a connection";
                reached "cut";

            /// Longest pause inside a request body, and of a client in taking its answer.
            body_timeout: Duration = Duration::from_secs(30);
                bounds "a pause inside of a request body, or of a client in taking its answer";
                reached "cut";

            /// Longest time of a whole request body that comes more slowly than 16 KiB a second.
            body_total_timeout: Duration = Duration::from_secs(60);
                bounds "a whole request body, WebSocket message or answer over HTTP that moves more slowly than \
                    `BYTES_PER_SECOND_MIN` (`crates/gateway/src/pace.rs`), 16 KiB a second";
                reached "a request body: refuse, 408, LC0110; else cut";

            /// Longest time that one call or SQL request waits for its answer.
            request_timeout: Duration = Duration::from_secs(300);
                bounds "waiting for the answer of a call or query over HTTP";
                reached "refuse: 504, LC0112; the call may still be carried out";
        }
    }
}

section! {
    /// Keep-alive and queues of a client's connection (05 §3.5).
    "websocket" => pub struct WebSocket;

    server {
        in WebSockets {
            /// A Ping is sent this often; it must be smaller than idle-timeout.
            ping_interval: Duration = Duration::from_secs(15);
                bounds "time between Pings";
                reached "must be smaller than the idle timeout";

            /// A connection from which nothing at all arrives for this long is ended.
            idle_timeout: Duration = Duration::from_secs(30);
                bounds "silence of a client; a client that takes nothing for so long; one that takes a little stays, until its memory is needed for others";
                reached "cut";

            /// How long to wait for the client's answer to a Close.
            close_handshake_timeout: Duration = Duration::from_millis(250);
                bounds "waiting for the answer to a Close";
                reached "cut";

            /// How long clients that ask for it may have lost their connection without their module hearing that they left. 0s: no time.
            session_grace: Duration = Duration::from_secs(30);
                bounds "how long a client with `session_grace` that has lost its connection may be away before its module \
                    hears that it left";
                reached "the disconnect reducer runs";

            /// Whether messages to clients that accept it are compressed: "off", "as-asked", "keep-order" (Brotli
            /// only; also a TypeScript client of the reference that asks for Brotli loses the order).
            compression: CompressionChoice = CompressionChoice::Off;
                bounds "not a limit: `off`, `keep-order` (Brotli only), `as-asked`";
                reached "";
        }
        in Queues {
            /// Received but unprocessed messages of one database, over all its clients; beyond it, clients are read no further.
            incoming_queue_length: usize = 16_384;
                bounds "client messages, calls and queries over HTTP, and clients that connect, received and not yet \
                    executed, over all clients of a database; those over HTTP until they are answered";
                reached "wait: its clients are read no further";
        }
    }
}
