//! `spacetime describe` (07 §5.7).

use clap::ValueEnum;
use lightcone_types::json::{parse, Node};

use super::{Auth, Common, Context};
use crate::error::{Error, Result};
use crate::json_text::pretty;
use crate::output::result;
use crate::schema::Schema;
use crate::targets::After;

#[derive(Debug, clap::Args)]
#[command(override_usage = "spacetime describe --json [OPTIONS] [DATABASE] [reducer|table <NAME>]")]
pub struct Args {
    /// The database (may be left out in a project with one), then what to describe; everything if that is left out
    #[arg(value_name = "ARGS", num_args = 0..=3)]
    args: Vec<String>,
    /// Print JSON (the only format there is)
    #[arg(long, required = true)]
    json: bool,
    /// Send no credentials
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Entity {
    Reducer,
    Table,
}

pub async fn run(context: &mut Context, args: Args) -> Result<()> {
    let (database, rest) = args.common.resolve(&args.args, After::Optional)?;
    let entity = entity_of(&rest).map_err(|error| database.explain(error))?;
    let auth = Auth::new(args.anonymous, args.common.yes);
    let (client, identity) = context.reach(&database, auth).await?;
    let schema = Schema::fetch(&client, &identity).await?;
    let root =
        parse(&schema.json).map_err(caused!("LC0616", "the server's description is not JSON"))?;
    match entity {
        None => result!("{}", pretty(&root)),
        Some((kind, name)) => match find(&root, kind, name) {
            Some(node) => result!("{}", pretty(node)),
            None if kind == Entity::Reducer => return Err(Error::plain("no such reducer")),
            None => return Err(Error::plain("no such table")),
        },
    }
    Ok(())
}

/// What is to be described, if not all.
fn entity_of(words: &[String]) -> Result<Option<(Entity, &str)>> {
    let why = match words {
        [] => return Ok(None),
        [kind, name] => match Entity::from_str(kind, false) {
            Ok(kind) => return Ok(Some((kind, name.as_str()))),
            Err(_) => format!("invalid value '{kind}' [possible values: reducer, table]"),
        },
        [_] => "the following required arguments were not provided:\n  <NAME>".to_owned(),
        [_, _, more, ..] => format!("unexpected argument '{more}' found"),
    };
    Err(Error::Usage(why))
}

/// One definition, by its canonical name: in version 10 among the sections, in version 9 among the members.
fn find<'n, 't>(root: &'n Node<'t>, kind: Entity, name: &str) -> Option<&'n Node<'t>> {
    let (section, member, mapping) = match kind {
        Entity::Reducer => ("Reducers", "reducers", "Function"),
        Entity::Table => ("Tables", "tables", "Table"),
    };
    let by_name = |list: &'n Node<'t>, key: &str, name: &str| {
        let mut list = list.as_array()?.iter();
        list.find(|d| d.get(key).and_then(Node::as_str) == Some(name))
    };
    let Some(sections) = root.get("sections").and_then(Node::as_array) else {
        return by_name(root.get(member)?, "name", name);
    };
    let source = sections
        .iter()
        .filter_map(|s| s.get("ExplicitNames")?.get("entries")?.as_array())
        .flatten()
        .filter_map(|entry| entry.get(mapping))
        .find(|m| m.get("canonical_name").and_then(Node::as_str) == Some(name))
        .and_then(|m| m.get("source_name")?.as_str())
        .unwrap_or(name);
    let list = sections.iter().find_map(|s| s.get(section))?;
    by_name(list, "source_name", source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_in_both_versions() {
        let v10 = parse(
            r#"{"sections":[{"Reducers":[{"source_name":"addOne","params":1}]},
                {"ExplicitNames":{"entries":[{"Function":{"source_name":"addOne","canonical_name":"add_one"}}]}}]}"#,
        )
        .expect("JSON");
        assert!(find(&v10, Entity::Reducer, "add_one").is_some());
        assert!(find(&v10, Entity::Table, "add_one").is_none());
        let v9 = parse(r#"{"tables":[{"name":"t"}],"reducers":[]}"#).expect("JSON");
        assert!(find(&v9, Entity::Table, "t").is_some());
        assert!(find(&v9, Entity::Reducer, "t").is_none());
    }
}
