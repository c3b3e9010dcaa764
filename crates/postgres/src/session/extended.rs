//! The extended protocol: statements that are prepared, bound to values, and run in parts (06 §6).

use std::sync::Arc;

use lightcone_database::{ParameterText, Rights, SqlError, QUERY_BYTES_MAX};
use lightcone_query::postgresql::{is_empty, parameter_oid, tokens, Format, Token};
use lightcone_types::{AlgebraicType, ProductType};
use tokio::time::Instant;

use super::super::catalogue::{is_question, may_be_ad_hoc};
use super::super::commands::Answer;
use super::super::copy::Copy;
use super::super::failure::{of_statement, state, Failure};
use super::super::messages::{protocol, Body, WireError};
use super::super::parameters::literal;
use super::super::prepared::{Pending, Portal, Prepared, Progress, Suspended, SUSPENDED_TIME_MAX};
use super::super::table::column_types;
use super::super::tags::{verb_of, Tags};
use super::statement::{check_length, too_long};
use super::writes::changes_rows;
use super::{Session, Stop};

impl Session {
    pub(super) async fn parse(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let name = body.text()?.to_owned();
        let text = body.text()?.to_owned();
        let given = (0..body.u16()?)
            .map(|_| body.u32())
            .collect::<Result<Vec<_>, _>>()?;
        self.check_token()?;
        self.cancel.begin();
        let prepared = self.prepare(text, &given).await?;
        self.store.put_statement(&name, prepared)?;
        self.wire.empty(b'1');
        Ok(())
    }

    async fn prepare(&mut self, text: String, given: &[u32]) -> Result<Prepared, Stop> {
        let refused = |error: lightcone_query::SqlError| {
            of_statement(lightcone_database::SqlError::Query(error.to_string()))
        };
        let text = Arc::new(ParameterText::read(text).map_err(refused)?);
        let empty = vec!["''".to_owned(); text.count()];
        let shape = text.with_literals_within(&empty, QUERY_BYTES_MAX);
        let shape = shape.ok_or_else(|| too_long(text.text()))?;

        let texts = || vec![AlgebraicType::String; text.count()];
        let (types, columns) = if is_empty(&shape) {
            (Vec::new(), None)
        } else if Copy::read(&shape)?.is_some() {
            // It gives no rows of the usual kind, and is looked at when it runs.
            (texts(), None)
        } else {
            check_length(&shape)?;
            let tokens = tokens(&shape).unwrap_or_default();
            match self.answered_here(&shape, &tokens)? {
                Some(Answer::Rows(table)) => (texts(), Some(table.column_types())),
                Some(_) => (texts(), None),
                None => self.describe_statement(&text, &tokens).await?,
            }
        };
        let given = |nth: usize| given.get(nth).copied().filter(|oid| *oid != 0);
        let oids = types.iter().enumerate();
        let oids = oids.map(|(nth, ty)| given(nth).unwrap_or_else(|| parameter_oid(ty)));
        Ok(Prepared {
            oids: oids.collect(),
            types,
            columns,
            text,
        })
    }

    /// The types of a statement's parameters, and its columns if it gives rows.
    async fn describe_statement(
        &mut self,
        text: &Arc<ParameterText>,
        tokens: &[Token],
    ) -> Result<(Vec<AlgebraicType>, Option<ProductType>), Stop> {
        let is_question = is_question(tokens);
        let mut refusal = None;
        if !is_question || may_be_ad_hoc(tokens) {
            let (database, holder) = self.database().await?;
            let caller = &self.login.caller;
            match database.describe(&holder, caller, text.clone()).await {
                Ok(described) => return Ok((described.parameters, described.columns)),
                Err(error @ SqlError::NotCompiled(_)) if is_question => {
                    refusal = Some(of_statement(error));
                }
                Err(error @ SqlError::NotCompiled(_)) if changes_rows(verb_of(text.text())) => {
                    let (written, count) = (text.text().to_owned(), text.count());
                    let refusal = of_statement(error);
                    return self.described_write(written, count, refusal).await;
                }
                Err(error) => return Err(of_statement(error).into()),
            }
        }
        let question = text.text().to_owned();
        let read = self.described_question(question, refusal).await?;
        let columns = column_types(&read.columns());
        Ok((read.parameters(text.count()), Some(columns)))
    }

    pub(super) fn bind(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let portal = body.text()?.to_owned();
        let prepared = self.store.statement(body.text()?)?;
        let formats = read_formats(body)?;
        let count = usize::from(body.u16()?);
        if count != prepared.types.len() {
            let message = format!(
                "bind message supplies {count} parameters, but the prepared statement requires {}",
                prepared.types.len()
            );
            return Err(Failure::new(state::PROTOCOL_VIOLATION, message).into());
        }
        let mut literals = Vec::with_capacity(count);
        for (nth, ty) in prepared.types.iter().enumerate() {
            let value = match body.u32()? {
                u32::MAX => None,
                length => Some(body.bytes(length as usize)?),
            };
            if value.is_some_and(|value| value.len() > QUERY_BYTES_MAX) {
                return Err(too_long_with_parameters().into());
            }
            let format = format_of(&formats, nth);
            literals.push(match value {
                None if changes_rows(verb_of(prepared.text.text())) => "NULL".to_owned(),
                value => literal(ty, prepared.oids[nth], format, value)?,
            });
        }
        let listed = read_formats(body)?;
        let columns = types_of(&prepared.columns).enumerate();
        let formats = columns.map(|(nth, _)| format_of(&listed, nth)).collect();
        let text = &prepared.text;
        let text = text.with_literals_within(&literals, QUERY_BYTES_MAX);
        let text = text.ok_or_else(too_long_with_parameters)?;
        let bound = Portal {
            prepared,
            text,
            formats,
            progress: Progress::New,
        };
        self.store.put_portal(&portal, bound)?;
        self.wire.empty(b'2');
        Ok(())
    }

    pub(super) fn describe(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let kind = body.u8()?;
        let name = body.text()?;
        let (prepared, formats) = match kind {
            b'S' => {
                let prepared = self.store.statement(name)?;
                self.wire.parameter_description(&prepared.oids);
                (prepared, Vec::new())
            }
            _ => {
                let portal = self.store.portal(name)?;
                (portal.prepared.clone(), portal.formats.clone())
            }
        };
        match &prepared.columns {
            Some(columns) => self.wire.row_description(columns, &formats),
            None => self.wire.empty(b'n'),
        }
        Ok(())
    }

    pub(super) async fn execute(&mut self, body: &mut Body<'_>) -> Result<(), Stop> {
        let name = body.text()?;
        let rows_max = u64::from(body.u32()?);
        self.check_token()?;
        let rights = self.rights_now();
        self.store.free_revoked(rights);
        self.login.caller.rights = rights;
        let portal = self.store.portal(name)?;
        // Whatever comes of it, a statement runs once.
        let pending = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Suspended(suspended) => {
                self.cancel.begin();
                let rights = suspended.rights;
                return self.fetch(name, suspended.pending, rows_max, rights).await;
            }
            Progress::Stale => {
                portal.progress = Progress::Stale;
                return Err(too_late(name).into());
            }
            Progress::Revoked => {
                portal.progress = Progress::Revoked;
                return Err(revoked(name).into());
            }
            Progress::Done if portal.prepared.columns.is_none() => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(Failure::new(state::NOT_IN_PREREQUISITE_STATE, message).into());
            }
            Progress::Done => {
                self.wire.complete("SELECT 0");
                return Ok(());
            }
            Progress::New => {
                let (text, formats) = (portal.text.clone(), portal.formats.clone());
                let prepared = portal.prepared.clone();
                if is_empty(&text) {
                    portal.progress = Progress::New;
                    self.wire.empty(b'I');
                    return Ok(());
                }
                let outcome = self.statement(text, formats, Tags::Drivers).await?;
                if !types_of(&prepared.columns).eq(types_of(&outcome.columns)) {
                    let message = "cached plan must not change result type";
                    return Err(Failure::unsupported(message).into());
                }
                outcome.pending
            }
        };
        // They may have changed just before the rows were read, or after.
        let rights = rights.max(self.login.caller.rights);
        self.fetch(name, pending, rows_max, rights).await
    }

    /// Sends rows of a portal, and keeps those that are left.
    async fn fetch(
        &mut self,
        name: &str,
        mut pending: Pending,
        rows_max: u64,
        rights: Rights,
    ) -> Result<(), Stop> {
        // A COPY has no parts.
        let rows_max = if pending.is_copy { 0 } else { rows_max };
        if self.send(&mut pending, rows_max).await? {
            // The statement may have been one that forgets them.
            if let Ok(portal) = self.store.portal(name) {
                portal.progress = Progress::Suspended(Suspended {
                    pending,
                    since: Instant::now(),
                    rights,
                });
            }
            self.wire.empty(b's');
        }
        Ok(())
    }
}

/// The types of a result's columns. One without rows has none.
fn types_of(columns: &Option<ProductType>) -> impl Iterator<Item = &AlgebraicType> {
    let elements = columns.iter().flat_map(|columns| columns.elements.iter());
    elements.map(|element| &element.algebraic_type)
}

fn too_late(portal: &str) -> Failure {
    let minutes = SUSPENDED_TIME_MAX.as_secs() / 60;
    let message = format!(
        "portal \"{portal}\" has no rows left, as none was fetched for {minutes} minutes: run the statement again"
    );
    Failure::new(state::NO_SUCH_CURSOR, message)
}

fn revoked(portal: &str) -> Failure {
    let message = format!(
        "portal \"{portal}\" has no rows left, as the role that they were read with was taken away: run the statement again"
    );
    Failure::new(state::INSUFFICIENT_PRIVILEGE, message)
}

fn too_long_with_parameters() -> Failure {
    let message =
        format!("the statement has more than {QUERY_BYTES_MAX} bytes with its parameters");
    Failure::new(state::LIMIT_REACHED, message)
}

fn read_formats(body: &mut Body<'_>) -> Result<Vec<Format>, WireError> {
    let count = body.u16()?;
    let read = |_| match body.u16()? {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        code => protocol(format!("unsupported format code: {code}")),
    };
    (0..count).map(read).collect()
}

/// One format is that of all, none is text.
fn format_of(listed: &[Format], nth: usize) -> Format {
    match listed {
        [all] => *all,
        listed => listed.get(nth).copied().unwrap_or_default(),
    }
}
