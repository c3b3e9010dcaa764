//! The rows of answers to SQL (06 §5.14), one at a time, however many there are.

use lightcone_types::json::{parse, product_type_from_node, product_type_to_json, write_string};

/// A row. Longer ones are neither written nor read.
pub(in crate::commands) const LINE_BYTES_MAX: usize = 1 << 30;
/// Before the rows stands their type, in at most so many bytes.
const HEAD_BYTES_MAX: usize = 16 << 20;
/// Brackets around the rows, and around a column of a row.
const ROWS_DEPTH: usize = 3;
const COLUMN_DEPTH: usize = 4;

/// Takes an answer in parts, or several ones behind each other, and makes a line of each of its rows: an object with its columns by name.
#[derive(Default)]
pub(super) struct Rows {
    stage: Stage,
    head: Vec<u8>,
    row_type: String,
    /// `"id":`, for each column.
    names: Vec<String>,
    /// The row so far.
    line: Vec<u8>,
    column: usize,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    pub count: u64,
    /// Number and name of the column by which rows of several answers have an order.
    key: Option<(usize, String)>,
    /// Of the last row that was whole, in JSON.
    last_key: Vec<u8>,
    /// Of this row.
    next_key: Vec<u8>,
    value_at: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    Rows,
    Tail,
}

type Done = Result<(), String>;

impl Rows {
    pub fn with_key(key: Option<(usize, String)>) -> Rows {
        Rows {
            key,
            ..Rows::default()
        }
    }

    /// What a query for so many rows more has behind its table. None: they have no order.
    pub fn page(&self, rows_max: u64) -> Option<String> {
        let name = self.key.as_ref()?.1.replace('"', "\"\"");
        let mut clause = String::new();
        if !self.last_key.is_empty() {
            let key = std::str::from_utf8(&self.last_key).ok()?;
            let text = parse(key).ok()?;
            let text = text
                .as_str()
                .map(|text| format!("'{}'", text.replace('\'', "''")));
            clause = format!(" WHERE \"{name}\" > {}", text.as_deref().unwrap_or(key));
        }
        Some(format!("{clause} ORDER BY \"{name}\" LIMIT {rows_max}"))
    }

    /// The lines of the rows that end in this part.
    ///
    /// # Errors
    /// It is no answer to SQL.
    pub fn take(&mut self, part: &[u8]) -> Result<Vec<u8>, String> {
        let mut lines = Vec::new();
        for &byte in part {
            match byte {
                _ if self.is_in_string => self.in_string(byte),
                b' ' | b'\n' | b'\r' | b'\t' => {}
                b'[' | b'{' => self.open(byte)?,
                b']' | b'}' => self.close(byte, &mut lines)?,
                b',' if self.stage == Stage::Rows => self.comma()?,
                byte => {
                    self.is_in_string = byte == b'"';
                    self.put(byte);
                }
            }
        }
        if self.line.len() > LINE_BYTES_MAX {
            return Err(format!("a row has more than {LINE_BYTES_MAX} bytes"));
        }
        match self.head.len() > HEAD_BYTES_MAX {
            true => Err("there are no rows in it".to_owned()),
            false => Ok(lines),
        }
    }

    /// The end of an answer: the type of a row. None: it is not whole.
    pub fn end(&mut self) -> Option<String> {
        let is_whole = self.stage == Stage::Tail && self.depth == 0;
        self.stage = Stage::Head;
        self.names.clear();
        let row_type = std::mem::take(&mut self.row_type);
        is_whole.then_some(row_type)
    }

    /// Behind the value of a column.
    fn end_column(&mut self) {
        if self.key.as_ref().is_some_and(|key| key.0 == self.column) {
            self.next_key.clear();
            let value = self.line.get(self.value_at..);
            self.next_key.extend_from_slice(value.unwrap_or_default());
        }
    }

    fn put(&mut self, byte: u8) {
        match self.stage {
            Stage::Head => self.head.push(byte),
            Stage::Rows => self.line.push(byte),
            Stage::Tail => {}
        }
    }

    fn in_string(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_string = false,
            _ => {}
        }
        self.put(byte);
    }

    fn open(&mut self, byte: u8) -> Done {
        self.depth += 1;
        match (self.stage, self.depth) {
            (Stage::Head, ROWS_DEPTH) if self.head.ends_with(b"\"rows\":") => self.read_head(),
            (Stage::Rows, COLUMN_DEPTH) if byte == b'[' => {
                self.line = vec![b'{'];
                self.column = 0;
                self.name_column();
                Ok(())
            }
            (Stage::Rows, COLUMN_DEPTH) => Err("a row is no list".to_owned()),
            _ => {
                self.put(byte);
                Ok(())
            }
        }
    }

    fn close(&mut self, byte: u8, lines: &mut Vec<u8>) -> Done {
        match (self.stage, self.depth) {
            (Stage::Rows, COLUMN_DEPTH) if self.column + 1 < self.names.len() => {
                return Err("a row has fewer columns than its type".to_owned());
            }
            (Stage::Rows, COLUMN_DEPTH) => {
                self.end_column();
                std::mem::swap(&mut self.last_key, &mut self.next_key);
                self.line.extend_from_slice(b"}\n");
                lines.append(&mut self.line);
                self.count += 1;
            }
            (Stage::Rows, ROWS_DEPTH) => self.stage = Stage::Tail,
            _ => self.put(byte),
        }
        let depth = self.depth.checked_sub(1);
        self.depth = depth.ok_or("more is closed than was opened")?;
        Ok(())
    }

    fn comma(&mut self) -> Done {
        match self.depth {
            ROWS_DEPTH => {}
            COLUMN_DEPTH if self.column + 1 >= self.names.len() => {
                return Err("a row has more columns than its type".to_owned());
            }
            COLUMN_DEPTH => {
                self.end_column();
                self.line.push(b',');
                self.column += 1;
                self.name_column();
            }
            _ => self.line.push(b','),
        }
        Ok(())
    }

    fn name_column(&mut self) {
        if let Some(name) = self.names.get(self.column) {
            self.line.extend_from_slice(name.as_bytes());
            self.value_at = self.line.len();
        }
    }

    fn read_head(&mut self) -> Done {
        self.head.extend_from_slice(b"[]}]");
        let head = std::mem::take(&mut self.head);
        let head = String::from_utf8(head).map_err(|error| error.to_string())?;
        let root = parse(&head).map_err(|error| error.to_string())?;
        let answer = root.as_array().and_then(|answers| answers.first());
        let row_type = answer.and_then(|answer| answer.get("schema"));
        let row_type = row_type.ok_or("it does not say the type of its rows")?;
        let row_type = product_type_from_node(row_type).map_err(|error| error.to_string())?;
        product_type_to_json(&row_type, &mut self.row_type);
        for (nth, column) in row_type.elements.iter().enumerate() {
            let mut name = String::new();
            match column.name() {
                Some(text) => write_string(text, &mut name),
                None => write_string(&nth.to_string(), &mut name),
            }
            self.names.push(name + ":");
        }
        self.stage = Stage::Rows;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = r#"[{"schema":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}},{"name":{"some":"rows\":["},"algebraic_type":{"String":[]}}]},"rows":["#;
    const TAIL: &str = r#"],"total_duration_micros":3,"stats":{"rows_inserted":0,"rows_deleted":0,"rows_updated":0}}]"#;

    /// Given in two parts, the first of so many bytes.
    fn lines(answer: &str, first: usize) -> Result<(String, Option<u64>), String> {
        let mut rows = Rows::default();
        let (first, rest) = answer.as_bytes().split_at(first);
        let lines = [rows.take(first)?, rows.take(rest)?].concat();
        let lines = String::from_utf8(lines).expect("text");
        Ok((lines, rows.end().map(|_| rows.count)))
    }

    #[test]
    fn rows_become_objects_wherever_an_answer_is_divided() {
        let rows = r#"[1,"a,]\"}"], [2, "\\"],[3,{"some":[["0x1"],{"b":[]}]}]"#;
        let answer = format!("{HEAD}{rows}{TAIL}");
        let expected = concat!(
            r#"{"id":1,"rows\":[":"a,]\"}"}"#,
            "\n",
            r#"{"id":2,"rows\":[":"\\"}"#,
            "\n",
            r#"{"id":3,"rows\":[":{"some":[["0x1"],{"b":[]}]}}"#,
            "\n"
        );
        for first in 0..=answer.len() {
            let found = lines(&answer, first).expect("an answer");
            assert_eq!(found, (expected.to_owned(), Some(3)), "{first}");
        }
        assert_eq!(
            lines(&format!("{HEAD}{TAIL}"), 0),
            Ok((String::new(), Some(0)))
        );
    }

    #[test]
    fn pages_go_on_behind_the_last_key() {
        let pages = |key: Option<(usize, String)>| {
            let mut taken = Rows::with_key(key);
            let mut clauses = vec![taken.page(9)];
            for rows in [r#"[1,"a"],[-2,"b,\"'"]"#, ""] {
                let answer = format!("{HEAD}{rows}{TAIL}");
                taken.take(answer.as_bytes()).expect("an answer");
                assert_eq!(taken.end().map(|_| taken.count), Some(2));
                clauses.push(taken.page(9));
            }
            clauses
        };
        let all = |first: &str, behind: &str| {
            let clauses = [first, behind, behind];
            clauses.map(|clause| Some(clause.to_owned())).to_vec()
        };
        let order = r#" ORDER BY "id" LIMIT 9"#;
        let behind = format!(r#" WHERE "id" > -2{order}"#);
        assert_eq!(pages(Some((0, "id".to_owned()))), all(order, &behind));
        let order = r#" ORDER BY """s" LIMIT 9"#;
        let behind = format!(r#" WHERE """s" > 'b,"'''{order}"#);
        assert_eq!(pages(Some((1, "\"s".to_owned()))), all(order, &behind));
        assert_eq!(pages(None), [None, None, None]);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for rows in ["[1]", r#"[1,"a",2]"#, r#"{"id":1}"#] {
            assert!(lines(&format!("{HEAD}{rows}{TAIL}"), 0).is_err(), "{rows}");
        }
        for answer in [r#"[{"rows":[]}]"#, "]", r#"[{"schema":1,"rows":[]}]"#] {
            assert!(lines(answer, 0).is_err(), "{answer}");
        }
        // It breaks off, or is something else.
        let answer = format!("{HEAD}[1,\"a\"]{TAIL}");
        for cut in 0..answer.len() {
            assert_eq!(
                lines(&answer[..cut], 0).map(|found| found.1),
                Ok(None),
                "{cut}"
            );
        }
        assert_eq!(lines("{}", 0), Ok((String::new(), None)));
    }

    /// The bytes are zeros that no memory is needed for.
    #[test]
    fn rows_and_what_is_before_them_have_bounds() {
        for (line, head) in [(LINE_BYTES_MAX + 1, 0), (0, HEAD_BYTES_MAX + 1)] {
            let mut rows = Rows {
                line: vec![0; line],
                head: vec![0; head],
                ..Rows::default()
            };
            assert!(rows.take(b" ").is_err(), "{line} {head}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(part in prop::collection::vec(any::<u8>(), 0..60), rest in "[\\[\\]{},\": 1ab\\\\]{0,60}") {
            let mut rows = Rows::default();
            let _ = rows.take(&part).and_then(|_| rows.take(rest.as_bytes()));
            let mut rows = Rows::with_key(Some((1, "b".to_owned())));
            rows.take(HEAD.as_bytes()).expect("a head");
            let _ = rows.take(rest.as_bytes()).and_then(|_| rows.take(&part));
            let _ = rows.page(1);
        }
    }
}
