//! Words with a meaning of their own (08 §2). All of them count only unquoted, in any letter case.

/// Is `word` one of `words`, which are upper-case, with blanks between them?
pub(crate) fn is_one_of(word: &str, words: &str) -> bool {
    let mut words = words.split_ascii_whitespace();
    words.any(|known| known.eq_ignore_ascii_case(word))
}

/// A name as it stands in a text, whatever it is.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// These end a table reference instead of being its alias.
pub(crate) const NO_TABLE_ALIAS: &str = "\
    WITH EXPLAIN ANALYZE SELECT WHERE GROUP SORT HAVING ORDER PIVOT TOP LATERAL VIEW LIMIT OFFSET FETCH UNION EXCEPT INTERSECT \
    ON JOIN INNER CROSS FULL LEFT RIGHT NATURAL USING CLUSTER DISTRIBUTE OUTER SET QUALIFY WINDOW END PARTITION";

/// These end a select item instead of being its alias.
pub(crate) const NO_COLUMN_ALIAS: &str = "\
    WITH EXPLAIN ANALYZE SELECT WHERE GROUP SORT HAVING ORDER TOP LATERAL VIEW LIMIT OFFSET FETCH UNION EXCEPT INTERSECT CLUSTER \
    DISTRIBUTE FROM INTO END";

/// These start an expression of their own kind, so a column of that name must be quoted.
/// `TRUE`, `FALSE`, `NULL` and `NOT` are in the same position and handled where expressions are parsed.
pub(crate) const VALUE_FUNCTIONS: &str = "\
    CURRENT_CATALOG CURRENT_USER SESSION_USER USER CURRENT_TIMESTAMP CURRENT_TIME CURRENT_DATE LOCALTIME LOCALTIMESTAMP";

/// Like [`VALUE_FUNCTIONS`], but more must follow them, most often an open parenthesis.
pub(crate) const SPECIAL_EXPRESSIONS: &str = "\
    CASE CAST TRY_CAST SAFE_CAST EXISTS EXTRACT CEIL FLOOR POSITION SUBSTRING OVERLAY TRIM INTERVAL LISTAGG ARRAY_AGG";

/// After an operand these continue the expression in a way that is not supported.
pub(crate) const FOREIGN_INFIX: &str =
    "IS IN BETWEEN LIKE ILIKE SIMILAR RLIKE REGEXP NOT COLLATE AT OVERLAPS XOR DIV OPERATOR";

/// Directly before a string they make a typed string.
pub(crate) const STRING_TYPES: &str = "\
    DATE DATETIME TIME TIMESTAMP TIMESTAMPTZ BOOLEAN BOOL CHAR CHARACTER VARCHAR TEXT STRING BYTEA BLOB BINARY INT INTEGER \
    SMALLINT TINYINT BIGINT FLOAT REAL DOUBLE DECIMAL NUMERIC JSON UUID";

/// Table names that must be quoted in `FROM` and `JOIN`.
pub(crate) const NO_TABLE_NAME: &str = "LATERAL TABLE UNNEST";

/// These start statements that are understood and refused.
pub(crate) const FOREIGN_STATEMENTS: &str = "\
    ALTER ANALYZE BEGIN CALL CLOSE COMMENT COMMIT COPY CREATE DEALLOCATE DECLARE DESC DESCRIBE DISCARD DROP EXECUTE EXPLAIN \
    FETCH GRANT KILL MERGE PREPARE RELEASE REPLACE REVOKE ROLLBACK SAVEPOINT START TABLE TRUNCATE USE VALUES WITH";

/// Words written in capitals when a statement is quoted in a message.
pub(crate) const CAPITALS: &str = "\
    ALL ALTER AND ANY AS ASC BETWEEN BY CASE CAST CONFLICT CREATE CROSS DEFAULT DELETE DESC DISTINCT DO DROP ELSE END EXCEPT \
    EXISTS EXPLAIN FALSE FETCH FIRST FOR FROM FULL GROUP HAVING ILIKE IN INNER INSERT INTERSECT INTO IS JOIN LATERAL LEFT LIKE \
    LIMIT LOCAL NATURAL NEXT NOT NOTHING NULL OFFSET ON ONLY OR ORDER OUTER RETURNING RIGHT ROW ROWS SELECT SESSION SET SHARE \
    SHOW TABLE TABLES THEN TRUE TRUNCATE UNION UPDATE USING VALUES WHEN WHERE WINDOW WITH";
