//! Variables of the environment over HTTP (2.11): the headers of a publish, and the routes that change them alone. No answer has a
//! value in it: who may read them asks with SQL.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{HeaderMap, StatusCode};
use lightcone_database::{EnvironmentChange, EnvironmentError, RemovedVariables, UpdateError};
use lightcone_node::permissions::Action;
use lightcone_schema::EnvironmentType;
use lightcone_types::Hash;
use serde_json::json;

use super::body::WithBody;
use super::path::Permitted;
use super::query::{wrong, Query};
use super::update;
use crate::reply::{self, missing_variables, Failure, Reply};

const SET: &str = "spacetime-environment";
const REMOVE: &str = "spacetime-environment-remove";
/// Ours: which of those that are set are secrets.
const SECRET: &str = "spacetime-environment-secret";

/// What the headers of a request change.
///
/// # Errors
/// They cannot be read, or name a key twice.
pub(super) fn change_of(headers: &HeaderMap) -> Result<EnvironmentChange, Failure> {
    let mut set = BTreeMap::new();
    for (key, value) in items_of(headers, SET)? {
        let value = value.ok_or_else(|| bad(SET, "an item is `KEY=VALUE`"))?;
        if set.insert(key, value).is_some() {
            return Err(bad(SET, "a key is there more than once"));
        }
    }
    let change = EnvironmentChange::new(set, removed_of(headers)?)?;
    Ok(change.with_secrets(keys_of(headers, SECRET)?)?)
}

/// The keys that a header names.
fn keys_of(headers: &HeaderMap, name: &str) -> Result<BTreeSet<String>, Failure> {
    let why = match name {
        REMOVE => "it names each key once, or is `*`",
        _ => "it names each key once",
    };
    let mut keys = BTreeSet::new();
    for (key, value) in items_of(headers, name)? {
        if value.is_some() || !keys.insert(key) {
            return Err(bad(name, why));
        }
    }
    Ok(keys)
}

fn removed_of(headers: &HeaderMap) -> Result<RemovedVariables, Failure> {
    let keys = keys_of(headers, REMOVE)?;
    Ok(match keys.contains("*") {
        true if keys.len() > 1 => return Err(bad(REMOVE, "`*` stands alone")),
        true => RemovedVariables::All,
        false if keys.is_empty() => RemovedVariables::None,
        false => RemovedVariables::Keys(keys),
    })
}

fn bad(header: &str, why: &str) -> Failure {
    Failure::bad_request(format!("invalid header `{header}`: {why} [LC0258]"))
}

/// A key, and its value if there is one.
type Item = (String, Option<String>);

/// The items of all headers of a name, each a list with commas.
fn items_of(headers: &HeaderMap, name: &str) -> Result<Vec<Item>, Failure> {
    let mut items = Vec::new();
    for header in headers.get_all(name) {
        let text = header.to_str();
        let text = text.map_err(|_| bad(name, "it is not visible ASCII"))?;
        items.extend(split(text).map_err(|why| bad(name, why))?);
    }
    Ok(items)
}

const SPACE: [char; 2] = [' ', '\t'];

fn split(text: &str) -> Result<Vec<Item>, &'static str> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c| c == ',' || SPACE.contains(&c));
        if rest.is_empty() {
            return Ok(items);
        }
        let end = rest.find(['=', ',']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let Some(after) = after.strip_prefix('=') else {
            items.push((key.trim_end_matches(SPACE).to_owned(), None));
            rest = after;
            continue;
        };
        let (value, after) = value(after)?;
        rest = after.trim_start_matches(SPACE);
        if !rest.is_empty() && !rest.starts_with(',') {
            return Err("something follows a quoted value");
        }
        items.push((key.to_owned(), Some(value)));
    }
}

/// The value at the start of a text, bare or in quotes, and what follows it.
fn value(text: &str) -> Result<(String, &str), &'static str> {
    const OPEN: &str = "a quoted value has no end";
    if let Some(text) = text.strip_prefix('\'') {
        let (value, rest) = text.split_once('\'').ok_or(OPEN)?;
        return Ok((value.to_owned(), rest));
    }
    if text.starts_with('"') {
        let mut is_escaped = false;
        let is_end = |(_, c): &(usize, char)| {
            let is_end = *c == '"' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        };
        let (end, _) = text.char_indices().skip(1).find(is_end).ok_or(OPEN)?;
        let (quoted, rest) = text.split_at(end + 1);
        let value = serde_json::from_str(quoted);
        return Ok((
            value.map_err(|_| "a quoted value has a wrong escape")?,
            rest,
        ));
    }
    let (value, rest) = text.split_at(text.find(',').unwrap_or(text.len()));
    let value = value.trim_end_matches(SPACE);
    let is_bare = |c: char| c.is_ascii_graphic() && !['"', '\'', '\\'].contains(&c);
    match value.chars().all(is_bare) {
        true => Ok((value.to_owned(), rest)),
        false => Err("a value with spaces, quotes or `\\` stands in quotes"),
    }
}

/// GET `/v1/database/:n/environment`: which variables there are, without values.
pub(super) async fn show(Permitted { state, record, .. }: Permitted) -> Reply {
    let running = state.node.databases.get(&record).await?;
    let environment = running.handle.environment().await;
    let environment = environment.map_err(update::failure)?;
    let declarations = environment.declarations.iter().map(|declared| {
        let ty = match &declared.ty {
            EnvironmentType::String => json!("String"),
            EnvironmentType::StringLiteral(value) => json!({ "StringLiteral": value }),
            EnvironmentType::Union(values) => json!({ "Union": values }),
        };
        json!({ "name": declared.name, "ty": ty, "optional": declared.optional })
    });
    let mut shown = json!({
        "module_hash": environment.program_hash.to_json_u256(),
        "declarations": declarations.collect::<Vec<_>>(),
        "stored_keys": environment.stored_keys,
    });
    if !environment.secret_keys.is_empty() {
        shown["secret_keys"] = json!(environment.secret_keys);
    }
    Ok(reply::json_value(&shown))
}

/// PUT: the body has all variables that there are to be.
pub(super) async fn replace(query: Query, headers: HeaderMap, asked: WithBody) -> Reply {
    change(&query, &headers, &asked, RemovedVariables::All).await
}

/// PATCH: the body has those that are set, and a header names those that go.
pub(super) async fn patch(query: Query, headers: HeaderMap, asked: WithBody) -> Reply {
    let removed = removed_of(&headers)?;
    if removed == RemovedVariables::All {
        return Err(bad(REMOVE, "`*` is for a publish; PUT replaces all"));
    }
    change(&query, &headers, &asked, removed).await
}

async fn change(
    query: &Query,
    headers: &HeaderMap,
    asked: &WithBody,
    removed: RemovedVariables,
) -> Reply {
    let by = &asked.caller.identity;
    asked.state.node.check(&asked.record, by, Action::Update)?;
    let hash = |text: &str| {
        Hash::from_json_u256(text).ok_or_else(|| wrong(format!("`{text}` is not a hash")))
    };
    let expected = query.text("expected_module_hash")?.map(hash).transpose()?;
    // What is wrong with it would be told with what is in it.
    let set: BTreeMap<String, String> = serde_json::from_str(asked.body.text()?)
        .map_err(|_| Failure::bad_request("the body is no JSON object of strings [LC0258]"))?;
    let change = EnvironmentChange::new(set, removed)?;
    let change = change.with_secrets(keys_of(headers, SECRET)?)?;
    let (state, by) = (asked.state.clone(), asked.caller.identity);
    let identity = asked.record.identity;
    reply::detached(async move {
        // Not while a publish replaces the program that they are checked against.
        let _lock = state.node.databases.lock_updates(&identity).await;
        // That may have taken long.
        let record = state.node.record_of(&identity)?;
        state.node.check(&record, &by, Action::Update)?;
        let running = state.node.databases.get(&record).await?;
        let changed = running.handle.change_environment(change, expected).await;
        match changed {
            Ok(_) => Ok(reply::json("{\"Ok\":null}")),
            Err(UpdateError::Environment(EnvironmentError::MissingRequired(keys))) => {
                let body = json!({ "Err": missing_variables(&keys) });
                Err(Failure::json(StatusCode::BAD_REQUEST, body))
            }
            Err(error) => Err(update::failure(error)),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header");
            headers.append(*name, value);
        }
        headers
    }

    fn shown(text: &str) -> Vec<(String, String)> {
        let items = split(text).expect(text).into_iter();
        items
            .map(|(key, value)| (key, value.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn values_are_bare_or_quoted() {
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            let all = all.iter();
            all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        for (text, expected) in [
            ("A=b", &[("A", "b")][..]),
            (
                " A=b , ,B= ,\tC=x=y",
                &[("A", "b"), ("B", ""), ("C", "x=y")],
            ),
            ("A='a, \"b\\' ,B=c", &[("A", "a, \"b\\"), ("B", "c")]),
            (
                r#"A="a,\n\"\\\u00e9",B="""#,
                &[("A", "a,\n\"\\é"), ("B", "")],
            ),
            ("", &[]),
        ] {
            assert_eq!(shown(text), pairs(expected), "{text}");
        }
        for text in [
            "A='x",
            "A=\"x",
            "A=\"\\q\"",
            "A=a b",
            "A=a\"b",
            "A='x'y",
            "A=a\\",
        ] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn headers_make_a_change() {
        let empty = change_of(&headers(&[])).expect("nothing");
        assert!(empty.is_empty());
        let change = headers(&[(SET, "A=1,B=2"), (SET, "C=3"), (REMOVE, "D, E")]);
        assert!(change_of(&change).is_ok());
        assert!(change_of(&headers(&[(REMOVE, "*")])).is_ok());
        assert!(change_of(&headers(&[(SET, "A=1,B=2"), (SECRET, "B")])).is_ok());
        for wrong in [
            &[(SET, "A=1"), (SET, "A=2")][..],
            &[(SET, "A")],
            &[(SET, "1A=x")],
            &[(SET, "A=1"), (REMOVE, "A")],
            &[(REMOVE, "A"), (REMOVE, "A")],
            &[(REMOVE, "*, A")],
            &[(REMOVE, "A=1")],
            &[(SET, "A=hidden-\u{e9}")],
            &[(SET, "A=hidden"), (SECRET, "B")],
            &[(SET, "A=hidden"), (SECRET, "A=hidden")],
            &[(SET, "A=lightcone-sealed-1:hidden")],
        ] {
            let failure = change_of(&headers(wrong)).expect_err("refused");
            assert!(!format!("{failure:?}").contains("hidden"), "{failure:?}");
        }
    }
}
