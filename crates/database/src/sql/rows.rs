//! From found rows to what a front door sends, page by page and within the client's budget.

use std::sync::Arc;

use lightcone_query::Projection;
use lightcone_table::RowLayout;
use lightcone_types::{AlgebraicType, Encode};

use crate::budget::{Charge, ClientBudget, HeldBytes};
use crate::error::{Exceeded, ReadError};
use crate::evaluate::{Cursor, Source};
use crate::reads::{Slice, Work};
use lightcone_live::BoundQuery;

/// Answers are made, and given to the socket, in pieces of about this size.
const PIECE_BYTES: usize = 256 << 10;
/// Rows that are longer may become longer than a piece when they are written.
const MEASURED_ROW_BYTES: usize = 4 << 10;

/// One row of a result.
pub struct ResultRow<'r> {
    layout: &'r RowLayout,
    columns: &'r [usize],
    bytes: &'r [u8],
}

impl<'r> ResultRow<'r> {
    /// Bytes of the row as it is found, with columns that are not in the result.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Type and BSATN of each column, in the order of the result.
    pub fn columns(&self) -> impl Iterator<Item = (&'r AlgebraicType, &'r [u8])> + '_ {
        self.columns.iter().map(|&column| {
            let ty = self.layout.column_type(column);
            (ty, self.layout.column(self.bytes, column))
        })
    }
}

/// What an encoder writes into.
pub trait Piece: Default + Send {
    fn bytes_len(&self) -> usize;

    /// Makes room for so many bytes, if there is none yet.
    fn prepare(&mut self, bytes: usize);

    fn into_bytes(self) -> Vec<u8>;
}

macro_rules! impl_piece {
    ($($piece:ty),*) => {$(
        impl Piece for $piece {
            fn bytes_len(&self) -> usize {
                self.len()
            }

            fn prepare(&mut self, bytes: usize) {
                if self.capacity() == 0 {
                    self.reserve(bytes);
                }
            }

            fn into_bytes(self) -> Vec<u8> {
                self.into()
            }
        }
    )*};
}

impl_piece!(String, Vec<u8>);

/// Writes rows in the form of one front door. Runs on the threads for reads; what it writes is cut into pieces between rows.
pub trait RowEncoder: Send {
    type Out: Piece;

    /// What stands before the rows.
    fn begin(&mut self, out: &mut Self::Out);

    fn row(&mut self, row: &ResultRow<'_>, out: &mut Self::Out);

    /// What stands behind the rows.
    fn end(&mut self, out: &mut Self::Out);

    /// The most memory that writing a row takes, with what is written.
    fn bytes_max(&self, row: &ResultRow<'_>) -> usize;
}

/// The rows of a statement on their way to the encoder.
pub(super) struct RowsOf<E: RowEncoder> {
    asked: BoundQuery,
    source: Source,
    layout: RowLayout,
    columns: Vec<usize>,
    cursor: Cursor,
    is_done: bool,
    count: u64,
    encoder: E,
    /// The piece under construction.
    out: E::Out,
    pieces: Vec<HeldBytes>,
    /// Reserved for a long row in `out`.
    charge: Charge,
    budget: Arc<ClientBudget>,
    exceeded: Option<Exceeded>,
}

impl<E: RowEncoder> RowsOf<E> {
    pub fn new(
        asked: BoundQuery,
        source: Source,
        mut encoder: E,
        budget: &Arc<ClientBudget>,
    ) -> RowsOf<E> {
        let (types, columns) = columns_of(&asked);
        let mut out = E::Out::default();
        encoder.begin(&mut out);
        RowsOf {
            layout: RowLayout::new(&types),
            columns,
            source,
            cursor: Cursor::default(),
            is_done: false,
            count: 0,
            encoder,
            out,
            pieces: Vec::new(),
            charge: Charge::default(),
            budget: budget.clone(),
            exceeded: None,
            asked,
        }
    }

    /// Writes, or counts, the next rows. False if there are none.
    fn rows(&mut self) -> Result<bool, ReadError> {
        if self.is_done {
            return Ok(false);
        }
        let asked = self.asked.clone();
        let BoundQuery::Table(plan) = &asked else {
            return self.running_rows();
        };
        let source = std::mem::replace(&mut self.source, Source::Count(0));
        let mut cursor = self.cursor;
        let has_more = match (&plan.projection, &source) {
            (Projection::Count(_), Source::Count(count)) => {
                self.count = *count;
                false
            }
            (Projection::Count(_), source) => {
                source.step(&asked, &mut cursor, |_| self.count += 1)?
            }
            (Projection::Row | Projection::Columns(_), source) => {
                let limit = plan.limit.unwrap_or(u64::MAX);
                let has_more = source.step(&asked, &mut cursor, |row| {
                    if self.count < limit && self.exceeded.is_none() {
                        self.count += 1;
                        self.exceeded = self.row(row).err();
                    }
                })?;
                has_more && self.count < limit
            }
        };
        self.source = source;
        self.cursor = cursor;
        self.is_done = !has_more;
        match self.exceeded {
            Some(exceeded) => Err(exceeded.into()),
            None => Ok(true),
        }
    }

    /// The same for a query on several tables.
    fn running_rows(&mut self) -> Result<bool, ReadError> {
        let mut source = std::mem::replace(&mut self.source, Source::Count(0));
        let has_more = match &mut source {
            Source::Running(running, _) => {
                let budget = self.budget.clone();
                running.step(&budget, |row| {
                    self.exceeded = self.row(row).err();
                    self.exceeded.is_none()
                })?
            }
            _ => false,
        };
        self.source = source;
        self.is_done = !has_more;
        match self.exceeded {
            Some(exceeded) => Err(exceeded.into()),
            None => Ok(true),
        }
    }

    fn row(&mut self, bytes: &[u8]) -> Result<(), Exceeded> {
        if self.out.bytes_len() + bytes.len() >= PIECE_BYTES {
            self.end_piece()?;
        }
        self.out.prepare(PIECE_BYTES);
        let row = ResultRow {
            layout: &self.layout,
            columns: &self.columns,
            bytes,
        };
        if bytes.len() > MEASURED_ROW_BYTES {
            let bytes_max = self.encoder.bytes_max(&row);
            if bytes_max > PIECE_BYTES {
                self.charge = self.budget.reserve(bytes_max)?;
            }
        }
        self.encoder.row(&row, &mut self.out);
        Ok(())
    }

    /// Is what was counted a row that is still to be written?
    fn ends_with_count(&self) -> bool {
        match &self.asked {
            BoundQuery::Table(plan) => {
                matches!(plan.projection, Projection::Count(_)) && plan.limit != Some(0)
            }
            BoundQuery::Tables(..) | BoundQuery::Window(_) => false,
        }
    }

    /// Puts what there is into a piece of its own.
    fn end_piece(&mut self) -> Result<(), Exceeded> {
        if self.out.bytes_len() == 0 {
            return Ok(());
        }
        self.charge = Charge::default();
        let piece = HeldBytes::new(std::mem::take(&mut self.out).into_bytes(), &self.budget)?;
        self.pieces.push(piece);
        Ok(())
    }
}

/// Types of a row as it is found, and which of its columns come out.
fn columns_of(asked: &BoundQuery) -> (Vec<AlgebraicType>, Vec<usize>) {
    let plan = match asked {
        BoundQuery::Table(plan) => plan,
        BoundQuery::Tables(..) | BoundQuery::Window(_) => {
            let output = asked.output_type().elements;
            let columns = (0..output.len()).collect();
            let types = output.into_iter().map(|element| element.algebraic_type);
            return (types.collect(), columns);
        }
    };
    let types = || plan.table.columns.iter().map(|column| column.ty.clone());
    match &plan.projection {
        Projection::Columns(listed) => {
            let columns = listed.iter().map(|(column, _)| usize::from(column.0));
            (types().collect(), columns.collect())
        }
        Projection::Row => {
            let hidden = plan.table.columns.len() - plan.table.declared_columns().len();
            let columns = hidden..plan.table.columns.len();
            (types().collect(), columns.collect())
        }
        Projection::Count(_) => (vec![AlgebraicType::U64], vec![0]),
    }
}

impl<E: RowEncoder> Work for RowsOf<E> {
    type Made = Vec<HeldBytes>;
    type Reply = Result<Vec<HeldBytes>, ReadError>;

    fn step(
        &mut self,
        _: &Arc<ClientBudget>,
        slice: &Slice<'_>,
    ) -> Result<Option<Vec<HeldBytes>>, ReadError> {
        while self.rows()? {
            if slice.is_over() {
                return Ok(None);
            }
        }
        if self.ends_with_count() {
            let row = self.count.to_vec();
            self.row(&row)?;
        }
        self.encoder.end(&mut self.out);
        self.end_piece()?;
        Ok(Some(std::mem::take(&mut self.pieces)))
    }

    fn reply(&mut self, made: Result<Vec<HeldBytes>, ReadError>) -> Option<Self::Reply> {
        Some(made)
    }
}
