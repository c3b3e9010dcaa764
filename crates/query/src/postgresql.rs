//! Questions in PostgreSQL's language (08 §19).
//!
//! ```text
//! text ─▶ tokens ─▶ read ─▶ tree of sqlparser ─▶ bind ─▶ plan ─────────▶ run ─▶ answer
//!                                         session, functions               ▲
//!                                           └▶ queries of the ad hoc ──────┘ rows of the module's tables
//!                                              language, for tables
//! ```
//!
//! psql, drivers and programs for reports ask in PostgreSQL's full language: joins, questions in questions, arrays. What names mean is
//! said by a [`Session`]: its virtual tables are made for the question. Tables of the module are read by queries of the ad hoc language,
//! which decides who sees what. What is not understood is refused: no answer is a guess. Depth, work and memory of every question are
//! bounded.

mod bind;
mod cast;
mod cells;
mod column_type;
mod failure;
mod formats;
mod functions;
mod literals;
mod patterns;
mod plan;
mod question;
mod read;
mod run;
mod session;
mod stored;
#[cfg(test)]
mod tests;
mod tokens;
mod types;
mod value;
mod write;

pub use bind::{Question, TableRead, Write};
pub use cells::{check_size, Cell};
pub use column_type::{columns_of, Type};
pub use failure::{state, Failure};
pub use formats::{with_length, write, write_bsatn, Format, EPOCH_2000_US};
pub use functions::{is_among, quoted_name};
pub use literals::write_literal;
pub use plan::{Change, TableChange};
pub use question::Unread;
pub use read::is_large;
pub use run::{Look, Pieces, STEPS_MAX};
pub use session::{Session, Target, VirtualTable};
pub use tokens::{
    first_word, is_empty, is_word, name, placed_tokens, statements, text, tokens, word, Token,
};
pub use types::{name_of_oid, oid, oid_of, parameter_oid, size_of_oid, CatalogueType, TYPES};
pub use value::Value;
pub use write::{Changed, Store};

pub use crate::literal::is_number;
