//! `spacetime call` (07 §5.4).

use lightcone_types::json::write_string;
use lightcone_types::{AlgebraicType, SpecialProduct};
use reqwest::header::CONTENT_TYPE;
use reqwest::StatusCode;

use super::{Auth, Common, Context};
use crate::error::{Error, Result};
use crate::http;
use crate::output::{remark, result};
use crate::schema::{similar, Function, Schema};
use crate::targets::After;

#[derive(Debug, clap::Args)]
#[command(override_usage = "spacetime call [OPTIONS] [DATABASE] <FUNCTION> [ARGS]...")]
pub struct Args {
    /// The database (may be left out in a project with one), the function, and its arguments, each as JSON
    #[arg(allow_negative_numbers = true, trailing_var_arg = false)]
    args: Vec<String>,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    common: Common,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let after = After::Required("FUNCTION");
    let (database, rest) = args.common.resolve(&args.args, after)?;
    let (name, values) = rest
        .split_first()
        .ok_or_else(|| Error::Usage("a function name is required".into()))?;

    let auth = Auth::new(args.anonymous, args.common.yes);
    let (client, identity) = context.reach(&database, auth).await?;
    let schema = Schema::fetch(&client, &identity).await?;
    let find = |list: &[Function]| list.iter().find(|f| f.name == *name).cloned();
    let reducer = find(&schema.reducers);
    let is_procedure = reducer.is_none();
    let Some(function) = reducer.or_else(|| find(&schema.procedures)) else {
        let error = unknown_function(name, &database.name, &identity.to_hex(), &schema);
        return Err(database.explain(error));
    };

    if let Some(warning) = surplus(&function, values) {
        remark!("warning: {warning}");
    }
    let body = arguments_json(&function, values);
    let path = format!("/v1/database/{identity}/call/{}", http::encode(name));
    let request = client.post(&path).header(CONTENT_TYPE, "application/json");
    let response = client.send(request.body(body)).await?;
    let status = response.status();
    let text = http::body_text(response).await?;
    if !status.is_success() {
        return Err(failure(status, &text, &function));
    }
    if is_procedure {
        result!("{text}");
    }
    Ok(())
}

/// What is said of arguments that the function does not take (07 §5.4 has them dropped).
fn surplus(function: &Function, values: &[String]) -> Option<String> {
    let surplus = values.get(function.params.elements.len()..)?;
    let (first, _) = surplus.split_first()?;
    Some(format!(
        "{} of the arguments are ignored, from `{first}` on: {}. Put quotes around a text with spaces.",
        surplus.len(),
        function.signature()
    ))
}

/// The arguments as one JSON array; more than the function takes are dropped.
fn arguments_json(function: &Function, values: &[String]) -> String {
    let params = function.params.elements.iter().zip(values);
    let texts = params.map(|(param, value)| {
        let ty = function.typespace.resolve(&param.algebraic_type);
        argument_json(&ty.ok(), value)
    });
    format!("[{}]", texts.collect::<Vec<_>>().join(", "))
}

/// An argument is a JSON text; strings and identities may be written plainly.
fn argument_json(ty: &Option<AlgebraicType>, value: &str) -> String {
    let is_quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    match ty {
        Some(AlgebraicType::String) if !is_quoted => {
            // As the reference does, so that `a\nb` means two lines; where that is no JSON, the text itself is meant.
            let mut text = format!("\"{value}\"");
            if lightcone_types::json::parse(&text).is_err() {
                text.clear();
                write_string(value, &mut text);
            }
            text
        }
        Some(ty) if is_identity(ty) && value.starts_with("0x") => format!("[\"{value}\"]"),
        Some(ty) if is_identity(ty) && value.starts_with("c200") => format!("[\"0x{value}\"]"),
        _ => value.to_owned(),
    }
}

fn is_identity(ty: &AlgebraicType) -> bool {
    ty.special_product() == Some(SpecialProduct::Identity)
}

fn unknown_function(name: &str, database: &str, identity: &str, schema: &Schema) -> Error {
    let all = || schema.reducers.iter().chain(&schema.procedures);
    let names = || all().map(|f| f.name.as_str());
    let (title, shown) = match similar(name, names()) {
        near if near.is_empty() => ("Here are some that exist:", names().take(10).collect()),
        near => ("A similar one exists:", near),
    };
    let lines = all().filter(|f| shown.contains(&f.name.as_str()));
    let lines = lines.map(|function| format!("\n    {}", function.signature()));
    let hint = match lines.collect::<String>() {
        lines if lines.is_empty() => "The module has none at all.".to_owned(),
        lines => format!("\n{title}{lines}"),
    };
    coded!(
        "LC0617",
        "No such reducer OR procedure `{name}` for database `{database}` resolving to identity `{identity}`.\n{hint}"
    )
}

fn failure(status: StatusCode, body: &str, function: &Function) -> Error {
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return http::refusal(status, body);
    }
    if !body.starts_with("invalid arguments") {
        return plain!("Response text: {body}");
    }
    coded!(
        "LC0618",
        "Response text: {body}\n\nThe function is:\n    {}\nEvery argument is a JSON text; a string may go without its quotes.",
        function.signature()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lightcone_types::{ProductType, Typespace};
    use std::sync::Arc;

    fn function() -> Function {
        Function {
            name: "f".into(),
            params: ProductType::new([
                ("n", AlgebraicType::U32),
                ("text", AlgebraicType::String),
                ("who", AlgebraicType::identity()),
            ]),
            typespace: Arc::new(Typespace::default()),
        }
    }

    fn json(values: &[&str]) -> String {
        arguments_json(
            &function(),
            &values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn arguments_take_their_parameters_form() {
        assert_eq!(json(&["1", "plain", "0xc2"]), r#"[1, "plain", ["0xc2"]]"#);
        assert_eq!(
            json(&["1", "\"quoted\"", "c200ff"]),
            r#"[1, "quoted", ["0xc200ff"]]"#
        );
        assert_eq!(json(&["1", r"two\nlines"]), r#"[1, "two\nlines"]"#);
        assert_eq!(json(&["1", "say \"hi\" now"]), r#"[1, "say \"hi\" now"]"#);
        assert_eq!(
            json(&["1", "a", "[\"0x1\"]", "surplus"]),
            r#"[1, "a", ["0x1"]]"#
        );
        assert_eq!(json(&[]), "[]");
    }

    #[test]
    fn surplus_arguments_are_named() {
        let of = |values: &[&str]| {
            let values: Vec<_> = values.iter().map(|v| (*v).to_owned()).collect();
            surplus(&function(), &values)
        };
        assert_eq!(of(&["1", "Ann", "c2"]), None);
        assert_eq!(of(&[]), None);
        let warning = of(&["1", "Main", "c2", "St"]).expect("one too many");
        assert!(warning.contains("from `St` on: f(n: U32"), "{warning}");
    }

    #[test]
    fn an_unknown_function_is_answered_with_near_ones() {
        let schema = Schema {
            reducers: vec![function()],
            ..Schema::default()
        };
        let text = unknown_function("g", "db", "c200", &schema).to_string();
        assert!(
            text.starts_with(
                "No such reducer OR procedure `g` for database `db` resolving to identity `c200`."
            ),
            "{text}"
        );
        assert!(text.contains("f(n: U32, text: String, "), "{text}");
    }

    #[test]
    fn wrong_arguments_show_the_signature() {
        let error = failure(
            StatusCode::BAD_REQUEST,
            "invalid arguments for reducer f: …",
            &function(),
        )
        .to_string();
        assert!(
            error.contains("Response text: invalid arguments") && error.contains("f(n: U32"),
            "{error}"
        );
        let error = failure(
            StatusCode::from_u16(530).expect("a status"),
            "insufficient_funds",
            &function(),
        )
        .to_string();
        assert_eq!(error, "Response text: insufficient_funds");
    }
}
