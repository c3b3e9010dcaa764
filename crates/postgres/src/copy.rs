//! `COPY (query) TO STDOUT`: rows as lines of text or CSV, as `\copy` of psql and exports of other programs ask for them.

use lightcone_query::postgresql::{
    self, first_word, is_word, placed_tokens, word, write_bsatn, Format, Token,
};
use lightcone_types::ProductType;

use super::commands::is_utf8;
use super::failure::{state, Failure};
use super::messages::put_message;
use super::table::SmallTable;
use lightcone_database::ResultRow;

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
        if first_word(text).as_deref() != Some("copy") {
            return Ok(None);
        }
        let (places, tokens) = placed_tokens(text).unwrap_or_default();
        match (&places[..], &tokens[..]) {
            ([_, places @ ..], [copy, rest @ ..]) if is_word(copy, "copy") => {
                copied(text, places, rest).map(Some)
            }
            _ => Ok(None),
        }
    }
}

fn unsupported() -> Failure {
    Failure::unsupported("of COPY there is only `COPY table TO STDOUT` and `COPY (query) TO STDOUT`, WITH FORMAT text or csv, DELIMITER, NULL, HEADER and ENCODING 'UTF8'")
}

/// Reads what stands behind `COPY`. Each token begins at a place of the text.
fn copied(text: &str, places: &[usize], tokens: &[Token]) -> Result<Copy, Failure> {
    let end = end_of_source(tokens).ok_or_else(unsupported)?;
    let (source, rest) = tokens.split_at(end);
    let [to, stdout, options @ ..] = rest else {
        return Err(unsupported());
    };
    if !is_word(to, "to") || !is_word(stdout, "stdout") {
        return Err(unsupported());
    }
    let last = places[end - 1];
    let query = match source {
        [Token::LParen, first, .., Token::RParen] => {
            let queries = ["select", "with", "values"];
            let is_query = queries.iter().any(|word| is_word(first, word));
            if !is_query && *first != Token::LParen {
                return Err(Failure::unsupported("COPY takes a query"));
            }
            text[places[0] + 1..last].to_owned()
        }
        [Token::LParen, ..] => return Err(Failure::unsupported("COPY takes a query")),
        // A table, and some of its columns.
        source => {
            let open = source.iter().position(|of| *of == Token::LParen);
            let table = text[places[0]..places[open.unwrap_or(end)]].trim();
            let columns = match open {
                Some(open) => &text[places[open] + 1..last],
                None => "*",
            };
            format!("SELECT {columns} FROM {table}")
        }
    };
    let lines = Options::read(options)?.lines()?;
    Ok(Copy { query, lines })
}

/// Where what is copied ends: a query in parentheses, or a table with columns.
fn end_of_source(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    for (nth, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            token if depth == 0 && is_word(token, "to") && nth > 0 => return Some(nth),
            token if depth == 0 && is_word(token, "from") => return None,
            _ => {}
        }
    }
    None
}

/// What stands behind `STDOUT`, as it is written.
#[derive(Default)]
struct Options {
    format: Option<String>,
    has_header: Option<bool>,
    delimiter: Option<String>,
    null: Option<String>,
    encoding: Option<String>,
}

impl Options {
    /// `WITH (FORMAT csv, HEADER)`, and the older `WITH CSV HEADER`.
    fn read(tokens: &[Token]) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut rest = match tokens {
            [with, rest @ ..] if is_word(with, "with") => rest,
            rest => rest,
        };
        if let [Token::LParen, listed @ .., Token::RParen] = rest {
            for option in listed.split(|of| *of == Token::Comma) {
                let (first, value) = option.split_first().ok_or_else(unsupported)?;
                options.set(&word(first).unwrap_or_default(), value)?;
            }
            return Ok(options);
        }
        while let [first, behind @ ..] = rest {
            let name = word(first).unwrap_or_default();
            rest = match (name.as_str(), behind) {
                ("csv", behind) => {
                    options.set("format", std::slice::from_ref(first))?;
                    behind
                }
                ("header", behind) => {
                    options.set("header", &[])?;
                    behind
                }
                ("delimiter" | "null" | "encoding", [as_, value, behind @ ..])
                    if is_word(as_, "as") =>
                {
                    options.set(&name, std::slice::from_ref(value))?;
                    behind
                }
                ("delimiter" | "null" | "encoding", [value, behind @ ..]) => {
                    options.set(&name, std::slice::from_ref(value))?;
                    behind
                }
                _ => return Err(unsupported()),
            };
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &[Token]) -> Result<(), Failure> {
        match (name, value) {
            ("format", [format @ Token::Word(_)]) => {
                let format = postgresql::name(format).unwrap_or_default();
                once(&mut self.format, format)
            }
            ("format", value) => once(&mut self.format, whole(value)?),
            ("header", value) => once(&mut self.has_header, truth(value)?),
            ("delimiter", value) => once(&mut self.delimiter, whole(value)?),
            ("null", value) => once(&mut self.null, whole(value)?),
            ("encoding", value) => once(&mut self.encoding, whole(value)?),
            _ => Err(unsupported()),
        }
    }

    /// Refuses what PostgreSQL refuses: its clients could not read such lines.
    fn lines(self) -> Result<CopyRows, Failure> {
        let invalid = |text: &str| Err(Failure::new(state::INVALID_PARAMETER_VALUE, text));
        let is_csv = match self.format.as_deref() {
            None | Some("text") => false,
            Some("csv") => true,
            Some(format) => {
                let text = format!("COPY format \"{format}\" is not supported: text and csv are");
                return Err(Failure::unsupported(text));
            }
        };
        if let Some(encoding) = self.encoding.filter(|name| !is_utf8(name)) {
            let text = format!("COPY encoding \"{encoding}\" is not supported: texts are UTF8");
            return Err(Failure::unsupported(text));
        }
        let usual = if is_csv { "," } else { "\t" };
        let delimiter = self.delimiter.unwrap_or_else(|| usual.to_owned());
        let &[delimiter] = delimiter.as_bytes() else {
            let text = "COPY delimiter must be a single one-byte character";
            return Err(Failure::unsupported(text));
        };
        let usual = if is_csv { "" } else { "\\N" };
        let null = self.null.unwrap_or_else(|| usual.to_owned());
        if matches!(delimiter, b'\n' | b'\r') {
            return invalid("COPY delimiter cannot be newline or carriage return");
        }
        if null.contains(['\n', '\r']) {
            return invalid("COPY null representation cannot use newline or carriage return");
        }
        let is_unsafe = matches!(delimiter, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9');
        if !is_csv && is_unsafe {
            let text = format!("COPY delimiter cannot be \"{}\"", char::from(delimiter));
            return invalid(&text);
        }
        if is_csv && delimiter == b'"' {
            return invalid("COPY delimiter and quote must be different");
        }
        if null.as_bytes().contains(&delimiter) {
            return invalid("COPY delimiter must not appear in the NULL specification");
        }
        if is_csv && null.contains('"') {
            return invalid("CSV quote character must not appear in the NULL specification");
        }
        Ok(CopyRows {
            is_csv,
            has_header: self.has_header.unwrap_or(false),
            delimiter,
            null,
            field: Vec::new(),
        })
    }
}

/// Sets an option that is not set yet.
fn once<T>(option: &mut Option<T>, value: T) -> Result<(), Failure> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => {
            let text = "conflicting or redundant options";
            Err(Failure::new(state::SYNTAX_ERROR, text))
        }
    }
}

/// A text that is all there is.
fn whole(tokens: &[Token]) -> Result<String, Failure> {
    let [token] = tokens else {
        return Err(unsupported());
    };
    let text = postgresql::text(token).map(str::to_owned);
    text.ok_or_else(unsupported)
}

/// A truth, which is true if nothing stands there.
fn truth(tokens: &[Token]) -> Result<bool, Failure> {
    let written = match tokens {
        [] => return Ok(true),
        [name @ Token::Word(_)] => postgresql::name(name).unwrap_or_default(),
        [Token::Number(number, _)] => number.clone(),
        tokens => whole(tokens)?,
    };
    match written.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        "match" => {
            let text = "cannot use \"match\" with HEADER in COPY TO";
            Err(Failure::unsupported(text))
        }
        _ => {
            let text = "header requires a Boolean value or \"match\"";
            Err(Failure::new(state::SYNTAX_ERROR, text))
        }
    }
}

impl CopyRows {
    /// Writes a row as a message with one line.
    pub fn row(&mut self, row: &ResultRow<'_>, out: &mut Vec<u8>) {
        let (count, _) = row.columns().size_hint();
        self.line(out, count, row.columns(), |(ty, value), field| {
            write_bsatn(ty, value, Format::Text, field);
            true
        });
    }

    /// The line with the names, if there is to be one.
    pub fn header(mut self, columns: &ProductType) -> Vec<u8> {
        let mut out = Vec::new();
        let columns = &columns.elements;
        if self.has_header {
            self.line(&mut out, columns.len(), columns, |column, field| {
                field.extend(column.name().unwrap_or_default().as_bytes());
                true
            });
        }
        out
    }

    /// The rows of a result that was made here.
    pub fn lines_of_table(mut self, table: &SmallTable) -> Vec<u8> {
        let mut out = self.clone().header(&table.column_types());
        for row in &table.rows {
            let cells = row.iter().zip(&table.columns);
            self.line(&mut out, row.len(), cells, |(cell, (_, ty)), field| {
                cell.write(ty, Format::Text, field)
            });
        }
        out
    }

    /// Writes a message with one line of so many fields. `write` writes a field; false: it is NULL.
    fn line<T>(
        &mut self,
        out: &mut Vec<u8>,
        count: usize,
        fields: impl IntoIterator<Item = T>,
        write: impl Fn(T, &mut Vec<u8>) -> bool,
    ) {
        put_message(out, b'd', |out| {
            for (nth, of) in fields.into_iter().enumerate() {
                if nth > 0 {
                    out.push(self.delimiter);
                }
                self.field.clear();
                match write(of, &mut self.field) {
                    true => self.write_field(count, out),
                    false => out.extend_from_slice(self.null.as_bytes()),
                }
            }
            out.push(b'\n');
        });
    }

    /// Writes a field of a line with so many.
    fn write_field(&self, count: usize, out: &mut Vec<u8>) {
        if !self.is_csv {
            for &byte in &self.field {
                match byte {
                    b'\n' => out.extend(b"\\n"),
                    b'\r' => out.extend(b"\\r"),
                    b'\t' => out.extend(b"\\t"),
                    0x08 => out.extend(b"\\b"),
                    0x0b => out.extend(b"\\v"),
                    0x0c => out.extend(b"\\f"),
                    byte if byte == b'\\' || byte == self.delimiter => out.extend([b'\\', byte]),
                    byte => out.push(byte),
                }
            }
            return;
        }
        let is_special =
            |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || *byte == self.delimiter;
        // Alone in a line, this would be the end of all.
        let is_end = count == 1 && self.field == b"\\.";
        let is_quoted =
            is_end || self.field == self.null.as_bytes() || self.field.iter().any(is_special);
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
    use lightcone_types::AlgebraicType;

    use super::super::table::text;
    use super::*;
    use lightcone_query::postgresql::Cell;
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
    }

    #[test]
    fn options_are_those_of_postgresql() {
        for (options, delimiter, null) in [
            ("(FORMAT 'csv')", b',', ""),
            (
                "(FORMAT \"csv\", HEADER 'on', NULL 'x', ENCODING 'utf-8')",
                b',',
                "x",
            ),
            ("(FORMAT text, DELIMITER E'\\t', HEADER 0)", b'\t', "\\N"),
            ("WITH DELIMITER AS '|' NULL AS ''", b'|', ""),
            ("WITH NULL E'\\\\N' DELIMITER 'X'", b'X', "\\N"),
            ("CSV DELIMITER 'a'", b'a', ""),
        ] {
            let lines = copy(&format!("COPY t TO STDOUT {options}")).lines;
            assert_eq!(
                (lines.delimiter, &*lines.null),
                (delimiter, null),
                "{options}"
            );
        }
        for (options, state) in [
            ("DELIMITER 'ab'", "0A000"),
            ("DELIMITER '\\t'", "0A000"),
            ("DELIMITER 'é'", "0A000"),
            ("DELIMITER ''", "0A000"),
            ("DELIMITER 'a'", "22023"),
            ("DELIMITER '\\'", "22023"),
            ("DELIMITER E'\\n'", "22023"),
            ("CSV DELIMITER '\"'", "22023"),
            ("NULL E'a\\nb'", "22023"),
            ("DELIMITER '|' NULL 'a|b'", "22023"),
            ("(FORMAT csv, NULL '\"')", "22023"),
            ("(FORMAT csv, FORMAT csv)", "42601"),
            ("CSV CSV", "42601"),
            ("(HEADER maybe)", "42601"),
            ("(HEADER match)", "0A000"),
            ("(FORMAT 'binary')", "0A000"),
            ("(ENCODING 'LATIN1')", "0A000"),
            ("ENCODING 'LATIN1'", "0A000"),
            ("(DELIMITER AS ';')", "0A000"),
            ("(DELIMITER ';' NULL '')", "0A000"),
            ("()", "0A000"),
            ("(FORMAT csv,)", "0A000"),
            ("(FORMAT csv", "0A000"),
            ("FORMAT csv", "0A000"),
            ("CSV, HEADER", "0A000"),
            ("(QUOTE '|', FORMAT csv)", "0A000"),
        ] {
            let read = Copy::read(&format!("COPY t TO STDOUT {options}"));
            assert_eq!(
                read.map(|_| ()).map_err(|e| e.state),
                Err(state),
                "{options}"
            );
        }
        for query in [
            "BEGIN",
            "COMMIT",
            "SHOW x",
            "SET a = 1",
            "DELETE FROM t",
            "",
        ] {
            let read = Copy::read(&format!("COPY ({query}) TO STDOUT"));
            assert_eq!(
                read.map(|_| ()).map_err(|e| e.state),
                Err("0A000"),
                "{query}"
            );
        }
    }

    fn lines(options: &str, fields: &[Option<&str>]) -> String {
        let cell =
            |field: &Option<&str>| field.map_or(Cell::Null, |field| Cell::Value(text(field)));
        let table = SmallTable {
            columns: vec![("a".to_owned(), AlgebraicType::String); fields.len()],
            rows: vec![fields.iter().map(cell).collect()],
        };
        let copy = copy(&format!("COPY t TO STDOUT {options}"));
        let bytes = copy.lines.lines_of_table(&table);
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
        assert_eq!(lines("CSV", &[Some("\\.")]), "\"\\.\"\n");
        assert_eq!(lines("", &[Some("\u{8}\u{b}\u{c}")]), "\\b\\v\\f\n");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(copy|COPY) ?[a(), ']{0,12}( to stdout)?[a(),' ;]{0,12}(csv|null|header|delimiter|format)?.{0,6}") {
            let _ = Copy::read(&text);
        }
    }
}
