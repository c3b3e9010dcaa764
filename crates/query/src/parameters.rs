//! Parameters `$1`, `$2`, … of prepared statements: where they stand, what type each has, and texts with literals in their places.
//!
//! The languages of 08 have no parameters: programs for PostgreSQL send them. So a statement is compiled when all have their values.

use std::ops::Range;

use lightcone_types::{AlgebraicType, IntegerType, SpecialProduct};

use crate::catalog::{Caller, Catalog};
use crate::error::{Result, SqlError, QUERY_BYTES_MAX};
use crate::lexer::{lex, Kind};
use crate::plan::{compile_postgresql, Statement};

/// A statement has at most so many parameters: each may take one more compilation to find out its type.
pub const PARAMETERS_MAX: usize = 64;

/// The text of a statement with the places of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterText {
    text: String,
    places: Vec<Place>,
    count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    bytes: Range<usize>,
    /// From 0.
    parameter: usize,
    /// It says how many rows there are to be.
    is_count: bool,
}

impl ParameterText {
    /// What it takes on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.text.capacity() + self.places.capacity() * size_of::<Place>()
    }

    /// Finds the parameters of a text.
    ///
    /// # Errors
    /// The text has no tokens that end, it is too long, or it has too many parameters.
    pub fn read(text: String) -> Result<ParameterText> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(SqlError::too_long(&text));
        }
        let mut places = Vec::new();
        let mut is_count = false;
        for token in lex(&text)? {
            let slice = &text[token.start..token.end];
            if let (Kind::ForeignLiteral, Some(number)) = (token.kind, slice.strip_prefix('$')) {
                if number.bytes().all(|byte| byte.is_ascii_digit()) {
                    let parameter = match number.parse::<usize>() {
                        Ok(n @ 1..=PARAMETERS_MAX) => n - 1,
                        _ => return Err(SqlError::UnsupportedLiteral(slice.to_owned())),
                    };
                    places.push(Place {
                        bytes: token.start..token.end,
                        parameter,
                        is_count,
                    });
                }
            }
            is_count =
                token.kind == Kind::Word && crate::words::is_one_of(slice, "LIMIT OFFSET FETCH");
        }
        let count = places.iter().map(|place| place.parameter + 1).max();
        Ok(ParameterText {
            count: count.unwrap_or(0),
            text,
            places,
        })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The highest number of a parameter.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The text with a literal in the place of each parameter, if it has at most so many bytes: otherwise it is not made.
    /// Parameters without a literal stay.
    pub fn with_literals_within(&self, literals: &[String], bytes_max: usize) -> Option<String> {
        let mut bytes = self.text.len();
        for place in &self.places {
            if let Some(literal) = literals.get(place.parameter) {
                // With a space on each side.
                bytes = bytes - place.bytes.len() + literal.len() + 2;
            }
        }
        (bytes <= bytes_max).then(|| self.fill(literals, bytes))
    }

    fn fill(&self, literals: &[String], capacity: usize) -> String {
        let mut filled = String::with_capacity(capacity);
        let mut end = 0;
        for place in &self.places {
            let Some(literal) = literals.get(place.parameter) else {
                continue;
            };
            filled.push_str(&self.text[end..place.bytes.start]);
            // A sign must not touch what stands before it.
            filled.push(' ');
            filled.push_str(literal);
            filled.push(' ');
            end = place.bytes.end;
        }
        filled.push_str(&self.text[end..]);
        filled
    }

    /// Compiles the statement with values of no importance: gives the types of its parameters, and what it is.
    ///
    /// A parameter starts as a literal that is no value of any type but String. Whatever type refuses it is its type.
    ///
    /// # Errors
    /// What the statement is refused for, whatever the values.
    pub fn describe(
        &self,
        catalog: &dyn Catalog,
        caller: &Caller,
    ) -> Result<(Vec<AlgebraicType>, Statement)> {
        let mut types = vec![AlgebraicType::String; self.count];
        let mut literals: Vec<String> = (0..self.count).map(unknown_literal).collect();
        for place in self.places.iter().filter(|place| place.is_count) {
            types[place.parameter] = AlgebraicType::U64;
            literals[place.parameter] = "1".to_owned();
        }
        loop {
            let text = self.with_literals_within(&literals, QUERY_BYTES_MAX);
            let text = text.ok_or_else(|| SqlError::too_long(&self.text))?;
            let refused = match compile_postgresql(&text, catalog, caller) {
                Ok(statement) => return Ok((types, statement)),
                Err(error) => error,
            };
            let SqlError::InvalidLiteral { text, ty } = &refused else {
                return Err(refused);
            };
            let parameter = (0..self.count).find(|&n| unknown_text(n) == *text);
            let known = known_types().find(|(known, _)| known.type_name() == *ty);
            let (Some(parameter), Some((known, literal))) = (parameter, known) else {
                return Err(refused);
            };
            // Each time round one literal fewer is unknown.
            types[parameter] = known;
            literals[parameter] = literal.to_owned();
        }
    }
}

fn unknown_text(parameter: usize) -> String {
    format!("parameter {}", parameter + 1)
}

/// Written as hex digits, which it is not: such a literal is converted wherever it stands.
fn unknown_literal(parameter: usize) -> String {
    format!("X'{}'", unknown_text(parameter))
}

/// The types that have literals, but String, each with one.
fn known_types() -> impl Iterator<Item = (AlgebraicType, &'static str)> {
    use AlgebraicType as T;
    let integers = IntegerType::ALL.iter().map(|ty| (T::Integer(*ty), "0"));
    let special = |ty: &SpecialProduct| Some((T::from(*ty), ty.facts().literals?.0));
    let specials = SpecialProduct::ALL.iter().filter_map(special);
    let others = [
        (T::Bool, "TRUE"),
        (T::F32, "0"),
        (T::F64, "0"),
        (T::bytes(), "X''"),
    ];
    integers.chain(others).chain(specials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_literals_has_the_length_of_a_statement() {
        let text = format!("select {}", "$1,".repeat(10_000));
        let text = ParameterText::read(text).expect("parameters");
        let short = text.with_literals_within(&["1".to_owned()], QUERY_BYTES_MAX);
        let short = short.expect("it is short");
        assert_eq!(short.len(), text.text().len() + 10_000);
        let exact = text.with_literals_within(&["1".to_owned()], short.len());
        assert_eq!(exact, Some(short.clone()));
        assert_eq!(
            text.with_literals_within(&["1".to_owned()], short.len() - 1),
            None
        );
        let long = vec!["1".repeat(QUERY_BYTES_MAX)];
        assert_eq!(text.with_literals_within(&long, QUERY_BYTES_MAX), None);
    }
}
