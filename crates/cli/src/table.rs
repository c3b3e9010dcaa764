//! Tables: as psql draws them (07 §5.5), and without any lines (07 §5.10).

/// A header, a rule, and the rows, every column as wide as its widest cell.
pub fn psql(header: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    let (mut lines, widths) = lines(header, rows, "|");
    let rule = widths.iter().map(|width| "-".repeat(width + 2));
    lines.insert(1, rule.collect::<Vec<_>>().join("+") + "\n");
    lines.concat()
}

/// A header and the rows with nothing but space between the columns: made to be cut up by other programs.
pub fn plain(header: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    lines(header, rows, "").0.concat()
}

/// The header and the rows as they are drawn, and the widths of the columns.
fn lines(
    header: &[impl AsRef<str>],
    rows: &[Vec<String>],
    between: &str,
) -> (Vec<String>, Vec<usize>) {
    let header = header.iter().map(|name| name.as_ref().to_owned()).collect();
    let rows: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.flat_map(|cell| cell.lines()).map(columns_of).max()
    };
    let widths = (0..header.len()).map(|column| width(column).unwrap_or(0));
    let widths: Vec<usize> = widths.collect();
    let drawn = rows.iter().map(|row| drawn(row, &widths, between));
    (drawn.collect(), widths)
}

/// One row; a cell with line breaks takes several lines.
fn drawn(cells: &[String], widths: &[usize], between: &str) -> String {
    let heights = cells.iter().map(|cell| cell.lines().count());
    let part_of_row = |part: usize| {
        let texts = widths.iter().enumerate().map(|(column, width)| {
            let cell = cells.get(column).and_then(|cell| cell.lines().nth(part));
            let text = cell.unwrap_or_default();
            format!(" {text}{:1$} ", "", width - columns_of(text))
        });
        texts.collect::<Vec<_>>().join(between) + "\n"
    };
    (0..heights.max().unwrap_or(1).max(1))
        .map(part_of_row)
        .collect()
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
        let text = psql(&["id", "name"], &rows);
        assert_eq!(
            text,
            " id    | name \n-------+------\n 1     | \"é\"  \n 22222 | a    \n       | b    \n"
        );
    }

    #[test]
    fn no_columns_is_an_empty_table() {
        assert_eq!(psql(&[""; 0], &[]), "\n\n");
    }
}
