//! What a tree of `sqlparser` says by itself: names as they are folded, operators, calls.

use sqlparser::ast::*;

use super::super::failure::{Done, Failure};
use super::super::patterns::Like;
use super::super::plan::Operator;
use crate::lexer::Comparison;

pub(super) fn refuse_if(is_there: bool, what: &str) -> Done<()> {
    match is_there {
        true => Err(format!("{what} is not supported").into()),
        false => Ok(()),
    }
}

/// A part of a tree that may be there.
pub(super) trait Part {
    fn is_there(&self) -> bool;
}

impl<T> Part for Option<T> {
    fn is_there(&self) -> bool {
        self.is_some()
    }
}

impl<T> Part for Vec<T> {
    fn is_there(&self) -> bool {
        !self.is_empty()
    }
}

impl Part for bool {
    fn is_there(&self) -> bool {
        *self
    }
}

/// Takes a struct apart: what is looked at, what must not be there, and what says nothing. With a field more it does not compile.
macro_rules! apart {
    ($of:expr, $name:ident { $($known:ident)* } without { $($absent:ident)* } passing { $($passed:ident)* }, $what:expr) => {
        let $name { $($known,)* $($absent,)* $($passed: _,)* } = $of;
        refuse_if([$($absent.is_there()),*].contains(&true), $what)?;
    };
    ($of:expr, $name:ident::$variant:ident { $($known:ident)* } without { $($absent:ident)* } passing { $($passed:ident)* }, $what:expr) => {
        let $name::$variant { $($known,)* $($absent,)* $($passed: _,)* } = $of else {
            unreachable!("it is this variant");
        };
        refuse_if([$($absent.is_there()),*].contains(&true), $what)?;
    };
    ($of:expr, $name:ident::$variant:ident { $($known:ident)* } passing { $($passed:ident)* }) => {
        let $name::$variant { $($known,)* $($passed: _,)* } = $of else {
            unreachable!("it is this variant");
        };
    };
}
pub(super) use apart;

/// A name as PostgreSQL folds it.
pub(super) fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// The parts of a name.
pub(super) fn parts(name: &ObjectName) -> Done<Vec<String>> {
    let part = |part: &ObjectNamePart| part.as_ident().map(folded);
    let parts: Option<Vec<String>> = name.0.iter().map(part).collect();
    let parts = parts.filter(|parts| parts.len() <= 3);
    parts.ok_or_else(|| "a name has too many parts".into())
}

/// The parts of a name that an expression is.
pub(super) fn names(expr: &Expr) -> Option<&[Ident]> {
    match expr {
        Expr::Identifier(name) => Some(std::slice::from_ref(name)),
        Expr::CompoundIdentifier(names) => Some(names),
        _ => None,
    }
}

/// Does an order descend, and do its NULLs come first?
pub(super) fn direction(by: &OrderByExpr) -> Done<(bool, bool)> {
    refuse_if(by.with_fill.is_some(), "WITH FILL")?;
    let is_descending = match by.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(_)) => return Err("ORDER BY USING is not supported".into()),
    };
    let nulls_first = by.options.nulls_first.unwrap_or(is_descending);
    Ok((is_descending, nulls_first))
}

pub(super) fn text(literal: &Value) -> Option<&str> {
    match literal {
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::UnicodeStringLiteral(text) => Some(text),
        Value::DollarQuotedString(quoted) => Some(&quoted.value),
        _ => None,
    }
}

pub(super) fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(literal) => text(&literal.value),
        _ => None,
    }
}

/// The operands of one operator that stands between all of them. There may be thousands.
pub(super) fn chain<'e>(mut expr: &'e Expr, operator: &BinaryOperator) -> Vec<&'e Expr> {
    let mut operands = Vec::new();
    while let Expr::BinaryOp { left, op, right } = expr {
        if op != operator {
            break;
        }
        operands.push(&**right);
        expr = left;
    }
    operands.push(expr);
    operands.reverse();
    operands
}

pub(super) fn operator(operator: &BinaryOperator) -> Done<Operator> {
    let written = match operator {
        // `OPERATOR(pg_catalog.~)`
        BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().cloned(),
        operator => Some(operator.to_string()),
    };
    let written = written.unwrap_or_default();
    let like = |is_not, is_regular, ignores_case| {
        Operator::Like(Like {
            is_not,
            is_regular,
            ignores_case,
        })
    };
    Ok(match written.as_str() {
        "=" => Operator::Compare(Comparison::Equal),
        "<>" | "!=" => Operator::Compare(Comparison::NotEqual),
        "<" => Operator::Compare(Comparison::Less),
        "<=" => Operator::Compare(Comparison::LessOrEqual),
        ">" => Operator::Compare(Comparison::Greater),
        ">=" => Operator::Compare(Comparison::GreaterOrEqual),
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Remainder,
        "&" => Operator::BitAnd,
        "||" => Operator::Concatenate,
        "~" => like(false, true, false),
        "~*" => like(false, true, true),
        "!~" => like(true, true, false),
        "!~*" => like(true, true, true),
        "~~" => like(false, false, false),
        "~~*" => like(false, false, true),
        "!~~" => like(true, false, false),
        "!~~*" => like(true, false, true),
        written => return Err(format!("operator {written} is not supported").into()),
    })
}

/// The last part of a type's name, with `[]` behind it if it is an array.
pub(super) fn type_name(data_type: &DataType) -> String {
    let written = data_type.to_string().to_lowercase();
    // `character varying(3)`, `timestamp(3) without time zone`
    let mut name = String::new();
    for part in written.split_inclusive(')') {
        name.push_str(part.split('(').next().unwrap_or_default());
    }
    let last = name.rsplit('.').next().unwrap_or_default().replace('"', "");
    match last.trim_end_matches("[]") {
        element if element.len() < last.len() => format!("{element}[]"),
        plain => plain.to_owned(),
    }
}

/// What is called, and with what.
#[derive(Default)]
pub(super) struct Call<'e> {
    pub name: String,
    pub arguments: Vec<&'e Expr>,
    pub is_distinct: bool,
    pub order: &'e [OrderByExpr],
    pub filter: Option<&'e Expr>,
    pub over: Option<&'e WindowSpec>,
}

impl<'e> Call<'e> {
    pub fn new(name: &str, arguments: Vec<&'e Expr>) -> Call<'e> {
        Call {
            name: name.to_owned(),
            arguments,
            ..Call::default()
        }
    }

    /// The call that an expression is. None: it is another expression.
    pub fn of(expr: &'e Expr) -> Done<Option<Call<'e>>> {
        let optional = |first: &'e Expr, rest: [Option<&'e Expr>; 2]| {
            let all = [Some(first)].into_iter().chain(rest);
            all.flatten().collect::<Vec<_>>()
        };
        Ok(Some(match expr {
            Expr::Function(function) => return Call::written(function).map(Some),
            Expr::Position { expr, r#in } => Call::new("position", vec![r#in, expr]),
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => Call::new("floor", vec![expr]),
            Expr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => Call::new("ceil", vec![expr]),
            Expr::Substring { .. } => {
                apart!(expr, Expr::Substring { expr substring_from substring_for } passing { special shorthand });
                let rest = [substring_from.as_deref(), substring_for.as_deref()];
                refuse_if(
                    rest[0].is_none() && rest[1].is_some(),
                    "substring() without FROM",
                )?;
                Call::new("substring", optional(expr, rest))
            }
            Expr::Trim { .. } => {
                apart!(expr, Expr::Trim { trim_where trim_what expr trim_characters } passing {});
                let name = match trim_where {
                    None => "trim",
                    Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let listed = trim_characters.as_deref().unwrap_or_default();
                refuse_if(listed.len() > 1, "trim() of more than two values")?;
                Call::new(name, optional(expr, [trim_what.as_deref(), listed.first()]))
            }
            _ => return Ok(None),
        }))
    }

    fn written(function: &'e Function) -> Done<Call<'e>> {
        apart!(function, Function { name parameters args filter over }
            without { uses_odbc_syntax null_treatment within_group } passing {}, "a clause of a function");
        refuse_if(
            !matches!(parameters, FunctionArguments::None),
            "a clause of a function",
        )?;
        let mut call = Call::new(&parts(name)?.pop().unwrap_or_default(), Vec::new());
        call.filter = filter.as_deref();
        call.over = match over {
            None => None,
            Some(WindowType::WindowSpec(window)) => Some(window),
            Some(WindowType::NamedWindow(_)) => return Err("a named window".into()),
        };
        let list = match args {
            // `current_user`
            FunctionArguments::None => return Ok(call),
            FunctionArguments::List(list) => list,
            FunctionArguments::Subquery(_) => return Err("a question as an argument".into()),
        };
        let FunctionArgumentList {
            duplicate_treatment,
            args,
            clauses,
        } = list;
        call.is_distinct = *duplicate_treatment == Some(DuplicateTreatment::Distinct);
        match &clauses[..] {
            [] => {}
            [FunctionArgumentClause::OrderBy(order)] => call.order = order,
            _ => return Err("a clause among the arguments of a function".into()),
        }
        call.arguments = arguments(args)?;
        Ok(call)
    }
}

/// The arguments of a function. `*` is none.
pub(super) fn arguments(list: &[FunctionArg]) -> Done<Vec<&Expr>> {
    use FunctionArg::Unnamed;
    if let [Unnamed(FunctionArgExpr::Wildcard)] = list {
        return Ok(Vec::new());
    }
    let arguments = list.iter().map(|argument| match argument {
        Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        _ => Err(Failure::from("an argument with a name")),
    });
    arguments.collect()
}

/// The call of a word that stands for a function without parentheses.
pub(super) fn of_word(name: &Ident) -> Option<Call<'static>> {
    let words = [
        "current_user",
        "session_user",
        "user",
        "current_role",
        "current_catalog",
        "current_schema",
        "current_date",
        "current_timestamp",
    ];
    let word = folded(name);
    let is_word = name.quote_style.is_none() && words.contains(&word.as_str());
    is_word.then(|| Call::new(&word, Vec::new()))
}

/// The name of a column that has no other.
pub(super) fn name_of(expr: &Expr) -> String {
    let unnamed = "?column?";
    if let Some(name) = names(expr).and_then(<[Ident]>::last) {
        return folded(name);
    }
    match expr {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let names = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            names.unwrap_or_else(|| name_of(root))
        }
        Expr::Cast {
            expr, data_type, ..
        } => match name_of(expr) {
            name if name == unnamed => type_name(data_type).trim_end_matches("[]").to_owned(),
            name => name,
        },
        Expr::TypedString(TypedString { data_type, .. }) => type_name(data_type),
        Expr::Case { else_result, .. } => match else_result.as_deref().map(name_of) {
            Some(name) if name != unnamed => name,
            _ => "case".to_owned(),
        },
        Expr::Exists { negated: false, .. } => "exists".to_owned(),
        Expr::Array(_) | Expr::Tuple(_) => "array".to_owned(),
        Expr::Value(ValueWithSpan {
            value: Value::Boolean(_),
            ..
        }) => "bool".to_owned(),
        expr => match Call::of(expr) {
            Ok(Some(call)) => call.name,
            _ => unnamed.to_owned(),
        },
    }
}
