//! Tables: as psql draws them (07 §5.5), and without any lines (07 §5.10).

/// A header, a rule, and the rows, every column as wide as its widest cell.
pub fn psql(header: &[String], rows: &[Vec<String>]) -> String {
    let widths = widths(header, rows);
    let mut out = String::new();
    line(&mut out, header, &widths, "|");
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    out.push_str(&rule.join("+"));
    out.push('\n');
    for row in rows {
        line(&mut out, row, &widths, "|");
    }
    out
}

/// A header and the rows with nothing but space between the columns: made to be cut up by other programs.
pub fn plain(header: &[String], rows: &[Vec<String>]) -> String {
    let widths = widths(header, rows);
    let mut out = String::new();
    line(&mut out, header, &widths, "");
    for row in rows {
        line(&mut out, row, &widths, "");
    }
    out
}

fn widths(header: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .chain(header.get(column));
        cells
            .flat_map(|cell| cell.lines())
            .map(columns_of)
            .max()
            .unwrap_or(0)
    };
    (0..header.len()).map(width).collect()
}

/// One row; a cell with line breaks takes several lines.
fn line(out: &mut String, cells: &[String], widths: &[usize], between: &str) {
    let height = cells
        .iter()
        .map(|c| c.lines().count())
        .max()
        .unwrap_or(1)
        .max(1);
    for part in 0..height {
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                out.push_str(between);
            }
            let text = cells
                .get(column)
                .and_then(|c| c.lines().nth(part))
                .unwrap_or("");
            out.push(' ');
            out.push_str(text);
            out.extend(std::iter::repeat_n(' ', width - columns_of(text) + 1));
        }
        out.push('\n');
    }
}

/// Terminal columns, taken as one per character: exact for everything but wide and combining characters.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::psql;

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["1".into(), "\"é\"".into()],
            vec!["22222".into(), "a\nb".into()],
        ];
        let text = psql(&["id".into(), "name".into()], &rows);
        assert_eq!(
            text,
            " id    | name \n-------+------\n 1     | \"é\"  \n 22222 | a    \n       | b    \n"
        );
    }

    #[test]
    fn no_columns_is_an_empty_table() {
        assert_eq!(psql(&[], &[]), "\n\n");
    }
}
