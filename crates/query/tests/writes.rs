//! Statements that write: values by type, and what is found by which condition (08 §4.2, §5.3).

use crate::columns::column_type;
use crate::common::{catalog, guest, owner};
use lightcone_query::{compile_statement, ParameterText, RowChange, Statement, WritePlan};
use lightcone_types::{AlgebraicType, ColId};
use lightcone_vectors::{each, file};

fn write(text: &str) -> Result<WritePlan, String> {
    match compile_statement(text, &catalog(), &owner()) {
        Ok(Statement::Write(plan)) => Ok(plan),
        Ok(Statement::Select(_) | Statement::Past(..)) => panic!("{text}: a query"),
        Err(error) => Err(error.to_string()),
    }
}

/// A table and a column of the type that a literal is written to.
fn column_of(ty: &str) -> Option<(String, String)> {
    let tables = file("08-statements.json")["tables"].take();
    for (table, definition) in tables.as_object().expect("tables") {
        for column in definition["columns"].as_array().expect("columns") {
            if column["type"] == ty {
                let name = column["name"].as_str().expect("a name");
                return Some((table.clone(), name.to_owned()));
            }
        }
    }
    None
}

/// What writing a literal into a column of a type gives.
fn written(literal: &str, ty: &str) -> Result<Vec<u8>, String> {
    let (table, column) = column_of(ty).expect("a column of the type");
    let plan = write(&format!("UPDATE {table} SET {column} = {literal}"))?;
    match plan.change {
        RowChange::Update { values, .. } => Ok(values[0].1.to_vec()),
        other => panic!("{other:?}"),
    }
}

/// Whatever the kind, what a literal means in a condition it means where it is written, but for strings: those stand for
/// strings, and for what has no literal of its own.
#[test]
fn literals_mean_what_they_mean_in_conditions() {
    each("08-literals.json", "valid", |entry| {
        let (literal, ty) = (entry.text("literal"), entry.text("type"));
        let is_text = literal.starts_with('\'');
        let taken = [
            "String",
            "Bytes",
            "Identity",
            "ConnectionId",
            "Uuid",
            "Timestamp",
        ];
        match written(literal, ty) {
            Ok(bsatn) => assert_eq!(bsatn, entry.hex(), "{literal}"),
            Err(error) => {
                assert!(is_text && !taken.contains(&ty), "{literal}: {error}");
                let ty = column_type(ty).type_name();
                assert_eq!(
                    error,
                    format!("Unexpected type: (expected) String != {ty} (inferred)")
                );
            }
        }
    });
    each("08-literals.json", "invalid", |entry| {
        assert!(written(entry.text("literal"), entry.text("type")).is_err());
    });
    assert_eq!(written("TRUE", "Bool"), Ok(vec![1]));
    assert!(written("1", "Bool").is_err());
}

#[test]
fn rows_are_found_as_by_a_query() {
    let plan =
        write("DELETE FROM playerState WHERE playerState.playerId = 7 AND TRUE").expect("valid");
    let RowChange::Delete { rows } = plan.change else {
        panic!("no delete");
    };
    assert_eq!(plan.table.name, "player_state");
    let rows = rows.plan().expect("no subqueries");
    assert_eq!(rows.equalities, [(ColId(0), 7_u32.to_le_bytes().into())]);
    let plan = write("update users set age = 1, id = 2, age = 3 where id = 4").expect("valid");
    let RowChange::Update { rows, values } = plan.change else {
        panic!("no update");
    };
    let number = |n: u32| Box::<[u8]>::from(n.to_le_bytes());
    let rows = rows.plan().expect("no subqueries");
    assert_eq!(values, [(ColId(1), number(1)), (ColId(0), number(2))]);
    assert_eq!(rows.equalities, [(ColId(0), number(4))]);
}

#[test]
fn rights_come_last_and_views_are_no_tables() {
    let by_guest = |text: &str| {
        let compiled = compile_statement(text, &catalog(), &guest());
        compiled.map(drop).expect_err(text).to_string()
    };
    let id = guest().identity.to_hex();
    let refused = format!("Caller {id} is not authorized to run SQL DML statements");
    for text in [
        "delete from t",
        "insert into users values (1, 2)",
        "update users set id = 1",
        "delete from guarded",
        "set row_limit = 1",
    ] {
        assert_eq!(by_guest(text), refused, "{text}");
    }
    let private = "no such table: `private_view`. If the table exists, it may be marked private.";
    assert_eq!(by_guest("delete from private_view"), private);
    let view = "`private_view` is a view; DML on views is not supported";
    assert_eq!(
        write("delete from private_view").map(drop),
        Err(view.to_owned())
    );
    let shown = compile_statement("SHOW row_limit", &catalog(), &guest()).expect("all callers may");
    let Statement::Select(plan) = shown else {
        panic!("no query");
    };
    let ty = &plan.output_type().elements[0];
    assert_eq!(ty.name(), Some("value"));
    assert!(matches!(ty.algebraic_type, AlgebraicType::Sum(_)));
}

#[test]
fn syntax_errors_say_what_was_expected() {
    for (text, start) in [
        (
            "insert",
            "sql parser error: Expected identifier, found: EOF",
        ),
        (
            "insert into users",
            "sql parser error: Expected SELECT, VALUES",
        ),
        (
            "insert into users (id",
            "sql parser error: Expected , or ), found: EOF",
        ),
        (
            "insert into users values",
            "sql parser error: Expected (, found: EOF",
        ),
        (
            "insert into users values (1",
            "sql parser error: Expected ), found: EOF",
        ),
        (
            "insert into users values (1,",
            "sql parser error: Expected an expression:",
        ),
        (
            "insert into users values ()",
            "Inserting a row with 0 values",
        ),
        (
            "insert into users () values (1, 2)",
            "The number of fields (0)",
        ),
        (
            "insert into table users values (1, 2)",
            "Unsupported: INSERT INTO TABLE",
        ),
        (
            "insert into users values (1, 2) x",
            "sql parser error: Expected end of statement",
        ),
        (
            "insert into users values (1, 2) on conflict do nothing",
            "Unsupported: INSERT",
        ),
        ("update users", "sql parser error: Expected SET, found: EOF"),
        (
            "update users u set id = 1",
            "Unsupported: UPDATE users u SET",
        ),
        (
            "update users set",
            "sql parser error: Expected identifier, found: EOF",
        ),
        (
            "update users set id",
            "sql parser error: Expected =, found: EOF",
        ),
        (
            "update users set id = ",
            "sql parser error: Expected an expression:",
        ),
        (
            "update users set id = :sender",
            "Unsupported literal expression: :sender",
        ),
        (
            "update users set id = - x",
            "Unsupported column/variable assignment expression: -x",
        ),
        (
            "update users set id = 1 returning id",
            "Unsupported: UPDATE",
        ),
        ("delete users", "Multi-table DELETE is not supported"),
        (
            "delete from users join other",
            "Unsupported table expression in DELETE: users JOIN other",
        ),
        (
            "delete from users where id = 1 limit 1",
            "Unsupported: DELETE FROM users",
        ),
        ("set", "sql parser error: Expected identifier, found: EOF"),
        (
            "set row_limit",
            "sql parser error: Expected equals sign or TO, found: EOF",
        ),
        ("set row_limit = 1, 2", "Unsupported: SET row_limit = 1, 2"),
        ("set local row_limit = 1", "Unsupported: SET LOCAL"),
        (
            "set row_limit = 1.5",
            "The literal expression `1.5` cannot be parsed as type `U64`",
        ),
        (
            "set row_limit = true",
            "Unexpected type: (expected) U64 != Bool (inferred)",
        ),
    ] {
        let error = write(text).map(drop).expect_err(text);
        assert!(error.starts_with(start), "{text}: {error}");
    }
}

fn described(text: &str) -> Result<Vec<String>, String> {
    let text = ParameterText::read(text.to_owned()).map_err(|error| error.to_string())?;
    let described = text.describe(&catalog(), &owner());
    let (types, _) = described.map_err(|error| error.to_string())?;
    Ok(types.iter().map(AlgebraicType::type_name).collect())
}

#[test]
fn parameters_have_the_types_of_what_they_meet() {
    for (text, types) in [
        (
            "select * from users where id = $1 and age > $2",
            vec!["U32", "U32"],
        ),
        (
            "select * from player where $2 = name or online = $1",
            vec!["Bool", "String"],
        ),
        (
            "select id from player where level = $1 limit $2",
            vec!["I32", "U64"],
        ),
        (
            "select * from player where identity = $1 and ts > $2 and uid = $3 and score < $4",
            vec![
                "(__identity__: U256)",
                "(__timestamp_micros_since_unix_epoch__: I64)",
                "(__uuid__: U128)",
                "F64",
            ],
        ),
        (
            "insert into users values ($2, $1), ($2, 3)",
            vec!["U32", "U32"],
        ),
        (
            "update team set label = $1, open = $2 where id = $3",
            vec!["String", "Bool", "U32"],
        ),
        ("delete from s where bytes = $1", vec!["Array<U8>"]),
        // No parameters: these are in texts and comments.
        (
            "select * from team where label = '$1' /* $2 */ -- $3",
            vec![],
        ),
    ] {
        assert_eq!(
            described(text),
            Ok(types.into_iter().map(str::to_owned).collect()),
            "{text}"
        );
    }
    for text in [
        "select * from users where id = $0",
        "select * from users where id = $65",
        "select * from users where nothing = $1",
        "select * from $1",
        "select $1 from users",
        "select * from player where maybe = $1",
    ] {
        assert!(described(text).is_err(), "{text}");
    }
}

#[test]
fn literals_take_the_places_of_parameters() {
    let text = "select * from users where id=$1 and age=-$2 and id <> $1";
    let text = ParameterText::read(text.to_owned()).expect("read");
    assert_eq!(
        text.with_literals_within(&["-1".to_owned(), "'$1'".to_owned()], 100)
            .expect("it is short"),
        "select * from users where id= -1  and age=- '$1'  and id <>  -1 "
    );
    assert_eq!(
        text.with_literals_within(&[], 100).as_deref(),
        Some(text.text())
    );
}
