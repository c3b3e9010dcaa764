//! Queries with their caller: what finds their rows once, and what live queries are made of.

use std::sync::Arc;

use lightcone_query::{Query, SelectPlan, ViewArguments};
use lightcone_schema::TableSchema;
use lightcone_types::{Identity, ProductType};

use crate::joins::JoinShapes;
use crate::windows::{WindowShape, WindowShapes};

/// The shapes of all live queries that were compiled for one version of a module.
#[derive(Default)]
pub struct Shapes {
    pub joins: JoinShapes,
    pub windows: WindowShapes,
}

/// A query, with the identity of its caller drawn in.
#[derive(Clone)]
pub enum BoundQuery {
    /// On one table.
    Table(Arc<SelectPlan>),
    /// On several, or in several fragments.
    Tables(Arc<Query>, Identity),
    /// A live window. The writer knows its rows.
    Window(Arc<BoundWindow>),
}

/// A window that is subscribed to, or is about to be. The query finds its rows where no index does.
pub struct BoundWindow {
    pub query: Query,
    pub sender: Identity,
    pub shape: Arc<WindowShape>,
    pub key: Box<[u8]>,
}

impl BoundWindow {
    /// The window that a query is. None: it is no window, or no index helps to keep it up to date.
    pub fn new(query: &Query, sender: &Identity, shapes: &Shapes) -> Option<BoundWindow> {
        let window = query.live_window(sender)?;
        let (shape, key) = shapes.windows.shape_of(&window, &shapes.joins)?;
        Some(BoundWindow {
            query: query.clone(),
            sender: *sender,
            shape,
            key,
        })
    }

    pub(crate) fn caller_and_text(&self) -> (Identity, String) {
        (self.sender, self.query.text.clone())
    }
}

impl BoundQuery {
    pub fn new(query: Query, sender: Identity) -> BoundQuery {
        match query.only_select_plan(&sender) {
            Some(plan) => BoundQuery::Table(Arc::new(plan)),
            None => BoundQuery::Tables(Arc::new(query), sender),
        }
    }

    /// Bytes at the start of each row that is found which are not for the client.
    pub fn hidden_bytes(&self) -> usize {
        match self {
            BoundQuery::Table(plan) => plan.table.hidden_bytes(),
            BoundQuery::Window(rows) => rows.shape.table.hidden_bytes(),
            // The executor gives rows as they are declared.
            BoundQuery::Tables(..) => 0,
        }
    }

    /// The tables that its text names, in its order.
    pub fn named_tables(&self) -> Vec<&Arc<TableSchema>> {
        match self {
            BoundQuery::Table(plan) => vec![&plan.table],
            BoundQuery::Tables(query, _) => query.named_tables().collect(),
            BoundQuery::Window(rows) => rows.query.named_tables().collect(),
        }
    }

    /// The tables that it reads; some more than once.
    pub fn read_tables(&self) -> Vec<&Arc<TableSchema>> {
        match self {
            BoundQuery::Table(plan) => vec![&plan.table],
            BoundQuery::Tables(query, _) => query.read_tables().collect(),
            BoundQuery::Window(rows) => vec![&rows.shape.table],
        }
    }

    /// Whether it reads views, of whose rows the caller may see a part only.
    pub fn reads_views(&self) -> bool {
        match self {
            BoundQuery::Table(plan) => plan.table.view.is_some(),
            BoundQuery::Tables(query, _) => query.read_tables().any(|table| table.view.is_some()),
            BoundQuery::Window(rows) => rows.shape.table.view.is_some(),
        }
    }

    /// What it gives the view that it reads.
    pub fn view_arguments(&self) -> &ViewArguments {
        match self {
            BoundQuery::Table(plan) => &plan.arguments,
            BoundQuery::Tables(query, _) => &query.arguments,
            BoundQuery::Window(rows) => &rows.query.arguments,
        }
    }

    /// Whether row-level security rules are drawn in.
    pub fn has_rules(&self) -> bool {
        match self {
            BoundQuery::Table(plan) => plan.fragment.is_some(),
            BoundQuery::Tables(query, _) => query.has_rules(),
            BoundQuery::Window(rows) => rows.query.has_rules(),
        }
    }

    /// Bytes of memory that are its own.
    pub fn memory_bytes(&self) -> usize {
        match self {
            BoundQuery::Table(plan) => plan.memory_bytes(),
            BoundQuery::Tables(query, _) => query.memory_bytes(),
            BoundQuery::Window(rows) => {
                size_of::<BoundWindow>() + rows.query.memory_bytes() + rows.key.len()
            }
        }
    }

    pub fn text(&self) -> &str {
        match self {
            BoundQuery::Table(plan) => &plan.text,
            BoundQuery::Tables(query, _) => &query.text,
            BoundQuery::Window(rows) => &rows.query.text,
        }
    }

    /// The table whose rows come out.
    pub fn table(&self) -> Option<&Arc<TableSchema>> {
        match self {
            BoundQuery::Table(plan) => Some(&plan.table),
            BoundQuery::Tables(query, _) => query.returned_table(),
            BoundQuery::Window(rows) => Some(&rows.shape.table),
        }
    }

    pub fn output_type(&self) -> ProductType {
        match self {
            BoundQuery::Table(plan) => plan.output_type(),
            BoundQuery::Tables(query, _) => query.output_type(),
            BoundQuery::Window(rows) => rows.query.output_type(),
        }
    }
}
