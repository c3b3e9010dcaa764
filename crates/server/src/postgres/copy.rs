//! `COPY (query) TO STDOUT`: rows as lines of text or CSV, as `\copy` of psql and exports of other programs ask for them.

use lightcone_types::ProductType;

use super::failure::{state, Failure};
use super::messages::put_message;
use super::prepared::{Pending, Piece as Messages};
use super::table::SmallTable;
use super::values::{write, write_bsatn, Format};
use super::words::{placed_pieces, Piece};
use crate::database::ResultRow;

/// A statement that copies.
#[derive(Debug)]
pub(super) struct Copy {
    /// Whose rows.
    pub query: String,
    pub lines: CopyRows,
}

/// How rows become lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyRows {
    is_csv: bool,
    has_header: bool,
    delimiter: u8,
    null: String,
    /// A field, before it is known whether it has to be quoted.
    field: Vec<u8>,
}

impl Copy {
    /// None: it is another statement.
    pub fn read(text: &str) -> Result<Option<Copy>, Failure> {
        // Most statements are none, and are not divided for it.
        let is_copy = |word: &str| word.eq_ignore_ascii_case("copy");
        if !text.trim_start().get(..4).is_some_and(is_copy) {
            return Ok(None);
        }
        let Some(pieces) = placed_pieces(text) else {
            return Ok(None);
        };
        match &pieces[..] {
            [(_, copy), rest @ ..] if copy.is_word("copy") => copied(text, rest).map(Some),
            _ => Ok(None),
        }
    }
}

fn copied(text: &str, pieces: &[(usize, Piece)]) -> Result<Copy, Failure> {
    let unsupported = || {
        Failure::unsupported("of COPY there is only `COPY table TO STDOUT` and `COPY (query) TO STDOUT`, WITH FORMAT text or csv, DELIMITER, NULL and HEADER")
    };
    let end = end_of_source(pieces).ok_or_else(unsupported)?;
    let (source, rest) = pieces.split_at(end);
    let rest: Vec<&Piece> = rest.iter().map(|(_, piece)| piece).collect();
    let [to, stdout, options @ ..] = &rest[..] else {
        return Err(unsupported());
    };
    if !to.is_word("to") || !stdout.is_word("stdout") {
        return Err(unsupported());
    }
    let place = |nth: usize| pieces.get(nth).map_or(text.len(), |(place, _)| *place);
    let query = match source {
        [(start, Piece::Symbol('(')), .., (close, _)] => text[start + 1..*close].to_owned(),
        // A table, and some of its columns.
        source => {
            let open = source.iter().position(|(_, piece)| piece.is_symbol('('));
            let table = text[place(0)..place(open.unwrap_or(end))].trim();
            let columns = match (open, source.last()) {
                (Some(open), Some((close, _))) => &text[place(open) + 1..*close],
                _ => "*",
            };
            format!("SELECT {columns} FROM {table}")
        }
    };
    let lines = options_of(options).ok_or_else(unsupported)?;
    if !lines.delimiter.is_ascii() || matches!(lines.delimiter, b'"' | b'\\' | b'\n' | b'\r') {
        let message = "COPY delimiter must be a single one-byte character, and no quote";
        return Err(Failure::new(state::INVALID_PARAMETER_VALUE, message));
    }
    Ok(Copy { query, lines })
}

/// Where what is copied ends: a query in parentheses, or a table with columns.
fn end_of_source(pieces: &[(usize, Piece)]) -> Option<usize> {
    let mut depth = 0_usize;
    for (nth, (_, piece)) in pieces.iter().enumerate() {
        match piece {
            Piece::Symbol('(') => depth += 1,
            Piece::Symbol(')') => depth = depth.checked_sub(1)?,
            Piece::Word(word) if depth == 0 && word == "to" && nth > 0 => return Some(nth),
            Piece::Word(word) if depth == 0 && word == "from" => return None,
            _ => {}
        }
    }
    None
}

/// `WITH (FORMAT csv, HEADER)`, and the older `WITH CSV HEADER`. None: something else stands there.
fn options_of(pieces: &[&Piece]) -> Option<CopyRows> {
    let mut lines = CopyRows {
        is_csv: false,
        has_header: false,
        delimiter: 0,
        null: String::new(),
        field: Vec::new(),
    };
    let mut null = None;
    let mut rest = pieces;
    while let [piece, behind @ ..] = rest {
        rest = behind;
        match piece {
            Piece::Symbol('(' | ')' | ',') => continue,
            Piece::Word(word) => match (word.as_str(), behind) {
                ("with" | "as", _) => continue,
                ("format", [Piece::Word(format), behind @ ..]) => {
                    lines.is_csv = match format.as_str() {
                        "csv" => true,
                        "text" => false,
                        _ => return None,
                    };
                    rest = behind;
                }
                ("csv", _) => lines.is_csv = true,
                ("header", [Piece::Word(is), behind @ ..]) if is == "true" || is == "on" => {
                    lines.has_header = true;
                    rest = behind;
                }
                ("header", [Piece::Word(is), behind @ ..]) if is == "false" || is == "off" => {
                    rest = behind;
                }
                ("header", _) => lines.has_header = true,
                ("delimiter", [piece, behind @ ..]) => {
                    rest = behind;
                    lines.delimiter = delimiter(piece, &mut rest)?;
                }
                ("null", [Piece::Word(as_), Piece::Text(text), behind @ ..]) if as_ == "as" => {
                    null = Some(text.clone());
                    rest = behind;
                }
                ("null", [Piece::Text(text), behind @ ..]) => {
                    null = Some(text.clone());
                    rest = behind;
                }
                ("encoding", [Piece::Text(_), behind @ ..]) => rest = behind,
                _ => return None,
            },
            _ => return None,
        }
    }
    if lines.delimiter == 0 {
        lines.delimiter = if lines.is_csv { b',' } else { b'\t' };
    }
    lines.null = null.unwrap_or_else(|| if lines.is_csv { "" } else { "\\N" }.to_owned());
    Some(lines)
}

/// `';'`, `AS ';'` and `E'\t'`.
fn delimiter(piece: &Piece, rest: &mut &[&Piece]) -> Option<u8> {
    let text = match (piece, *rest) {
        (Piece::Text(text), _) => text,
        (Piece::Word(_), [Piece::Text(text), behind @ ..]) => {
            *rest = behind;
            text
        }
        _ => return None,
    };
    match text.as_bytes() {
        [byte] => Some(*byte),
        b"\\t" => Some(b'\t'),
        _ => Some(b'\\'),
    }
}

impl CopyRows {
    /// Writes a row as a message with one line.
    pub fn row(&mut self, row: &ResultRow<'_>, out: &mut Vec<u8>) {
        put_message(out, b'd', |out| {
            for (nth, (ty, value)) in row.columns().enumerate() {
                self.separate(nth, out);
                self.field.clear();
                write_bsatn(ty, value, Format::Text, &mut self.field);
                self.write_field(out);
            }
            out.push(b'\n');
        });
    }

    /// The line with the names, if there is to be one.
    pub fn header(mut self, columns: &ProductType) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.has_header {
            return out;
        }
        put_message(&mut out, b'd', |out| {
            for (nth, column) in columns.elements.iter().enumerate() {
                self.separate(nth, out);
                self.field.clear();
                self.field
                    .extend(column.name().unwrap_or_default().as_bytes());
                self.write_field(out);
            }
            out.push(b'\n');
        });
        out
    }

    /// The rows of a result that was made here.
    pub fn pending_of_table(self, table: &SmallTable) -> Pending {
        let mut out = self.clone().header(&table.column_types());
        let mut lines = self;
        for row in &table.rows {
            put_message(&mut out, b'd', |out| {
                for (nth, (value, (_, ty))) in row.iter().zip(&table.columns).enumerate() {
                    lines.separate(nth, out);
                    let Some(value) = value else {
                        out.extend_from_slice(lines.null.as_bytes());
                        continue;
                    };
                    lines.field.clear();
                    write(ty, value, Format::Text, &mut lines.field);
                    lines.write_field(out);
                }
                out.push(b'\n');
            });
        }
        let messages: Messages = Box::new(out);
        let tag = format!("COPY {}", table.rows.len());
        Pending::new([messages].into(), tag).copied(table.columns.len())
    }

    fn separate(&self, nth: usize, out: &mut Vec<u8>) {
        if nth > 0 {
            out.push(self.delimiter);
        }
    }

    fn write_field(&self, out: &mut Vec<u8>) {
        if !self.is_csv {
            for &byte in &self.field {
                match byte {
                    b'\n' => out.extend(b"\\n"),
                    b'\r' => out.extend(b"\\r"),
                    b'\t' => out.extend(b"\\t"),
                    byte if byte == b'\\' || byte == self.delimiter => out.extend([b'\\', byte]),
                    byte => out.push(byte),
                }
            }
            return;
        }
        let is_special =
            |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || *byte == self.delimiter;
        let is_quoted = self.field == self.null.as_bytes() || self.field.iter().any(is_special);
        if !is_quoted {
            return out.extend_from_slice(&self.field);
        }
        out.push(b'"');
        for &byte in &self.field {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::text;
    use super::*;
    use lightcone_types::AlgebraicType;
    use proptest::prelude::*;

    fn copy(text: &str) -> Copy {
        let read = Copy::read(text).unwrap_or_else(|e| panic!("{text}: {}", e.message));
        read.unwrap_or_else(|| panic!("{text} copies"))
    }

    #[test]
    fn forms_of_the_statement() {
        for (text, query, is_csv, has_header) in [
            (
                "COPY (SELECT \"A\", ')' FROM t WHERE x IN (1, 2)) TO STDOUT",
                "SELECT \"A\", ')' FROM t WHERE x IN (1, 2)",
                false,
                false,
            ),
            (
                "copy Person to stdout with csv header;",
                "SELECT * FROM Person",
                true,
                true,
            ),
            (
                "COPY person (id, name) TO STDOUT (FORMAT csv, HEADER true, DELIMITER ';')",
                "SELECT id, name FROM person",
                true,
                true,
            ),
            (
                "COPY  ( SELECT 1 )  TO STDOUT WITH (FORMAT text, NULL '')",
                " SELECT 1 ",
                false,
                false,
            ),
        ] {
            let copy = copy(text);
            assert_eq!(
                (&*copy.query, copy.lines.is_csv, copy.lines.has_header),
                (query, is_csv, has_header),
                "{text}"
            );
        }
        assert!(Copy::read("SELECT 1").is_ok_and(|read| read.is_none()));
        assert!(Copy::read("copyright").is_ok_and(|read| read.is_none()));
        for text in [
            "COPY person FROM STDIN",
            "COPY person TO '/etc/passwd'",
            "COPY person TO PROGRAM 'sh'",
            "COPY (SELECT 1 TO STDOUT",
            "COPY person TO STDOUT BINARY",
            "COPY person TO STDOUT (FORMAT binary)",
            "COPY",
            "COPY TO STDOUT",
        ] {
            assert_eq!(
                Copy::read(text).map(|_| ()).map_err(|e| e.state),
                Err("0A000"),
                "{text}"
            );
        }
        let refused = Copy::read("COPY t TO STDOUT DELIMITER 'ab'");
        assert_eq!(refused.map(|_| ()).map_err(|e| e.state), Err("22023"));
    }

    fn lines(options: &str, fields: &[Option<&str>]) -> String {
        let table = SmallTable {
            columns: vec![("a".to_owned(), AlgebraicType::String); fields.len()],
            rows: vec![fields.iter().map(|field| field.map(text)).collect()],
        };
        let copy = copy(&format!("COPY t TO STDOUT {options}"));
        let pending = copy.lines.pending_of_table(&table);
        assert!(pending.is_copy && pending.copied_columns == Some(fields.len()));
        let bytes = (**pending.pieces.front().expect("a piece"))
            .as_ref()
            .to_vec();
        let mut lines = String::new();
        let mut rest = &bytes[..];
        while let [b'd', a, b, c, d, behind @ ..] = rest {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
            lines.push_str(std::str::from_utf8(&behind[..length]).expect("text"));
            rest = &behind[length..];
        }
        assert!(rest.is_empty());
        lines
    }

    #[test]
    fn fields_are_escaped() {
        let fields = [Some("a\tb\\c\nd"), None, Some("")];
        assert_eq!(lines("", &fields), "a\\tb\\\\c\\nd\t\\N\t\n");
        let fields = [Some("a,b"), None, Some(""), Some("q\"q")];
        assert_eq!(
            lines("CSV HEADER", &fields),
            "a,a,a,a\n\"a,b\",,\"\",\"q\"\"q\"\n"
        );
        assert_eq!(
            lines("(FORMAT csv, DELIMITER ';')", &[Some("a,b"), Some("c;")]),
            "a,b;\"c;\"\n"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(copy|COPY) ?[a(), ']{0,12}( to stdout)?[a(),' ;]{0,12}(csv|null|header|delimiter|format)?.{0,6}") {
            let _ = Copy::read(&text);
        }
    }
}
