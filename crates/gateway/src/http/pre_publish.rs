//! What a publish would do (06 §5.4).

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::Extension;
use lightcone_control::{DatabaseRecord, HostType, NameOrIdentity};
use lightcone_database::{DatabaseHandle, HeldBytes, StepReport, UpdateError, UpdatePlan};
use lightcone_node::auth::Caller;
use lightcone_node::databases::host_kind;
use lightcone_node::permissions::Action;
use lightcone_schema::{MigrationPlan, PlanStyle, Step, StepKind};
use lightcone_types::error_code;
use serde_json::{json, Map, Value};
use tokio::sync::oneshot;

use super::body::{SentBody, Upload};
use super::delivery;
use super::path::DatabasePath;
use super::publish_request::{check_action, host_type, publisher};
use super::query::Query;
use super::update;
use crate::client_address::Client;
use crate::gateway::Gateway;
use crate::publishing::{Publisher, Turn};
use crate::reply::{self, Failure, Reply};

/// Steps that an answer lists one by one; the text of the plan has a bound of its own.
const LISTED_STEPS_MAX: usize = 4096;

/// POST `/v1/database/:n/pre_publish`.
pub(super) async fn pre_publish(
    State(state): State<Arc<Gateway>>,
    DatabasePath(path): DatabasePath,
    query: Query,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
    request_body: SentBody,
) -> Reply {
    // Before it takes memory.
    admitted(&state, &path, &caller)?;
    let host_type = host_type(&query)?;
    let style = plan_style(&query)?;
    let is_dry_run = query.boolean("dry_run")?.unwrap_or(false);
    let upload = request_body.read_program(&state).await?;
    // The upload may have taken long.
    let record = admitted(&state, &path, &caller)?;
    let running = state.node.databases.get(&record).await?;
    // It writes nothing.
    let publisher = publisher(record.owner, &client);
    let turn = state.publish_turn(publisher, 0).await?;
    let handle = running.handle.clone();
    // A client that goes away ends a dry run. The work that comes before is done, and it all takes its turns until it has ended.
    let (asking, gone) = oneshot::channel::<()>();
    let given_up = async move { drop(gone.await) };
    let answer = reply::detached(async move {
        let question = Question {
            host_type,
            style,
            is_dry_run,
        };
        let upload = (upload, publisher, turn);
        let answer = answer(&state, &handle, &question, upload, given_up).await;
        drop(running);
        answer
    });
    let answer = answer.await?;
    drop(asking);
    Ok(delivery::held(reply::JSON, answer))
}

/// The record of a database that the caller may publish to.
fn admitted(
    state: &Gateway,
    path: &NameOrIdentity,
    caller: &Caller,
) -> Result<DatabaseRecord, Failure> {
    let record = state.node.record(path)?;
    check_action(state, &record, caller, Action::Update)?;
    Ok(record)
}

/// The command line sends the second name, which the reference ignores.
fn plan_style(query: &Query) -> Result<PlanStyle, Failure> {
    let styles = [
        ("AnsiColor", PlanStyle::AnsiColor),
        ("NoColor", PlanStyle::NoColor),
    ];
    let style = match query.word("style", &styles)? {
        Some(style) => Some(style),
        None => query.word("pretty_print_style", &styles)?,
    };
    Ok(style.unwrap_or_default())
}

struct Question {
    host_type: HostType,
    style: PlanStyle,
    /// Try the steps on a copy of the data.
    is_dry_run: bool,
}

async fn answer(
    state: &Gateway,
    handle: &DatabaseHandle,
    question: &Question,
    (upload, publisher, turn): (Upload, Publisher, Turn),
    given_up: impl Future<Output = ()>,
) -> Result<HeldBytes, Failure> {
    let mut given_up = pin!(given_up);
    let kind = host_kind(question.host_type);
    let prepared = handle.prepare_plan(upload.program.clone(), kind).await;
    let prepared = prepared.map_err(update::failure)?;
    let tables = handle.table_rows().await.map_err(update::failure)?;
    let tables = tables.into_iter().map(|table| (table.table, table.rows));
    let rows: TableRows = tables.collect();
    let planner = handle.clone();
    // A definition may be large.
    let work = reply::blocking(move || {
        let plan = planner.plan_update(&prepared);
        planner.check_plan(&plan).map_err(update::failure)?;
        Ok::<_, Failure>((prepared, plan))
    });
    let (prepared, plan) = work.await??;
    // What the module's code does from here on keeps no caller from publishing.
    drop(turn);
    let rehearsal = match &plan.migration {
        Ok(migration) if question.is_dry_run => {
            // The place of one that was given up is free for others.
            let turn = tokio::select! {
                turn = state.rehearsal_turn(publisher) => turn?,
                () = &mut given_up => return Err(update::failure(UpdateError::Cancelled)),
            };
            let rehearsed = match handle.rehearse(prepared, migration, given_up).await {
                Ok(reports) => Rehearsal::Done(reports),
                Err(UpdateError::Refused(reason)) => Rehearsal::Refused(reason),
                Err(error) => return Err(update::failure(error)),
            };
            drop(turn);
            Some(rehearsed)
        }
        _ => None,
    };
    let style = question.style;
    let describe = move || {
        let described = match &plan.migration {
            Ok(migration) => json!({
                "AutoMigrate": auto_migrate(&plan, migration, &rows, rehearsal, style),
            }),
            Err(refused) => json!({
                "ManualMigrate": {
                    "reason": refused.to_string(),
                    "major_version_upgrade": plan.major_version_upgrade,
                }
            }),
        };
        Ok(described.to_string().into_bytes())
    };
    delivery::made(state, describe).await
}

fn auto_migrate(
    plan: &UpdatePlan,
    migration: &MigrationPlan,
    rows: &TableRows,
    rehearsal: Option<Rehearsal>,
    style: PlanStyle,
) -> Value {
    let mut obstacles = obstacles(migration, rows);
    let rehearsal = rehearsal.map(|rehearsal| rehearsal.described(&mut obstacles));
    let mut text = plan.text(migration, style);
    for obstacle in &obstacles {
        text.push_str(&format!("!!! {obstacle}\n"));
    }
    let listed = migration.steps.iter().take(LISTED_STEPS_MAX);
    let steps: Vec<Value> = listed.map(|step| described(plan, step, rows)).collect();
    let mut answer = json!({
        "migrate_plan": text,
        "break_clients": migration.breaks_clients(),
        "token": plan.token.to_json_u256(),
        "major_version_upgrade": plan.major_version_upgrade,
        "steps_not_listed": migration.steps.len() - steps.len(),
        "steps": steps,
        "obstacles": obstacles,
    });
    if let Some(rehearsal) = rehearsal {
        answer["rehearsal"] = rehearsal;
    }
    answer
}

/// What trying the steps on a copy of the data has shown.
enum Rehearsal {
    Done(Vec<StepReport>),
    Refused(String),
}

impl Rehearsal {
    /// As it stands in the answer; what it failed for is an obstacle, unless one with its code is known already.
    fn described(self, obstacles: &mut Vec<String>) -> Value {
        let reports = match self {
            Rehearsal::Done(reports) => reports,
            Rehearsal::Refused(reason) => {
                let code = error_code(&reason);
                let is_same = |known: &String| error_code(known) == code;
                if code.is_none() || !obstacles.iter().any(is_same) {
                    obstacles.push(reason);
                }
                return json!({ "steps": [], "seconds": null });
            }
        };
        let time: Duration = reports.iter().map(|report| report.time).sum();
        let steps = reports.iter().take(LISTED_STEPS_MAX).map(|report| {
            let mut step = json!({
                "kind": report.step.kind().as_str(),
                "table": report.step.table(),
                "rows": report.rows,
                "seconds": report.time.as_secs_f64(),
            });
            if matches!(report.step, Step::RunMigration | Step::Backfill) {
                let written = report.written.iter().take(LISTED_STEPS_MAX);
                let written = written.map(|(table, rows)| json!({ "table": table, "rows": rows }));
                step["written"] = written.collect();
            }
            step
        });
        json!({ "steps": steps.collect::<Vec<_>>(), "seconds": time.as_secs_f64() })
    }
}

/// How many rows each table has.
type TableRows = HashMap<String, u64>;

/// What is known to refuse the plan as the data are now.
fn obstacles(migration: &MigrationPlan, rows: &TableRows) -> Vec<String> {
    let texts = migration.steps.iter().filter_map(|step| {
        let Step::RemoveTable { table } = step else {
            return None;
        };
        let rows = match *rows.get(table)? {
            0 => return None,
            1 => "1 row".to_owned(),
            rows => format!("{rows} rows"),
        };
        Some(format!(
            "Table {table} cannot be removed: it has {rows}. Delete them first (with a reducer, or DELETE in \
             `spacetime sql`), or keep the table [LC0225]"
        ))
    });
    texts.take(LISTED_STEPS_MAX).collect()
}

/// A step as an object: its kind, what it concerns, and how many rows the table has that it reads, rewrites or removes.
fn described(plan: &UpdatePlan, step: &Step, rows: &TableRows) -> Value {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
    set("kind", step.kind().as_str().into());
    if let Some(table) = step.table() {
        let is_view = matches!(
            step.kind(),
            StepKind::AddView | StepKind::RemoveView | StepKind::UpdateView
        );
        set(if is_view { "view" } else { "table" }, table.into());
        if let Some(rows) = rows.get(table).filter(|_| touches_rows(step.kind())) {
            set("rows", (*rows).into());
        }
    }
    if let Step::AddColumns { table } = step {
        set("columns", plan.added_columns(table).into());
    }
    if let Step::SetAsideTable { table, old } = step {
        set("old", old.as_str().into());
        set("replaced", plan.has_table(table).into());
        // Of a migration row by row: whether a function gets them.
        if let Some(has_function) = plan.has_row_function(old) {
            set("by_rows", has_function.into());
        }
    }
    if let Some(part) = step.part() {
        set(part_name(step.kind()), part.into());
    }
    Value::Object(object)
}

fn touches_rows(kind: StepKind) -> bool {
    matches!(
        kind,
        StepKind::RemoveTable
            | StepKind::SetAsideTable
            | StepKind::AddColumns
            | StepKind::AddIndex
            | StepKind::AddConstraint
            | StepKind::AddSequence
    )
}

fn part_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::RemoveConstraint | StepKind::AddConstraint => "constraint",
        StepKind::RemoveSequence | StepKind::AddSequence => "sequence",
        StepKind::ChangeColumnAccessorName => "column",
        StepKind::RemoveRowLevelSecurity | StepKind::AddRowLevelSecurity => "sql",
        _ => "index",
    }
}
