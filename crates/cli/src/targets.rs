//! Which database a command means: its positional arguments against the project's databases (07 §5.0).

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::project::{glob_matches, Project, Target};

pub use crate::project::Database;

impl Database {
    /// An error that may come of a name that was not taken for one.
    pub fn explain(&self, error: Error) -> Error {
        match &self.instead_of {
            None => error,
            Some(word) => error.with_note(&format!(
                "The project here has the database `{}`, so `{word}` was not taken for one. For the database `{word}`, add --no-config.",
                self.name
            )),
        }
    }
}

/// The project's databases, each once.
pub fn known(no_config: bool) -> Result<Vec<Database>> {
    let project = Project::find_unless(no_config, std::path::Path::new("."), None)?;
    let mut databases = project.map_or(Ok(Vec::new()), |project| project.databases())?;
    let mut names = HashSet::new();
    databases.retain(|found| names.insert(found.name.clone()));
    Ok(databases)
}

/// The targets of a project whose databases have names like this.
pub fn matching(pattern: &str, targets: &[Target]) -> Result<Vec<Target>> {
    let is_wanted = |name: &str| glob_matches(pattern, name);
    let mut wanted = targets.to_vec();
    wanted.retain(|target| target.database.as_deref().is_some_and(is_wanted));
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    let known = targets.iter().filter_map(|t| t.database.as_deref());
    let known = known.collect::<Vec<_>>().join(", ");
    bail!(
        "LC0608",
        "No database target matches '{pattern}'. Available databases: {known}"
    )
}

/// The same; where there is only one, another name is a new one for it.
pub fn chosen(pattern: &str, mut targets: Vec<Target>) -> Result<Vec<Target>> {
    let wanted = matching(pattern, &targets);
    match &mut targets[..] {
        [only] if wanted.is_err() => {
            only.database = Some(pattern.to_owned());
            Ok(targets)
        }
        _ => wanted,
    }
}

/// What the arguments after the database are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing may follow.
    None,
    /// Something may follow.
    Optional,
    /// This must follow.
    Required(&'static str),
    /// This must follow, and an unknown first word is a database if more words follow it (sql).
    RequiredOfAny(&'static str),
}

fn ambiguous(known: &[Database], first: &str) -> Error {
    let names: Vec<&str> = known.iter().map(|d| d.name.as_str()).collect();
    coded!(
        "LC0608",
        "Multiple databases found in config: {}. Please specify which database to use, or pass --no-config to use '{first}' \
         directly.",
        names.join(", "),
    )
}

fn missing(what: &[&str]) -> Error {
    let names: String = what.iter().map(|name| format!("  <{name}>\n")).collect();
    Error::Usage(format!(
        "the following required arguments were not provided:\n{names}"
    ))
}

/// Splits `args` into the database and the rest; `server` is the one from the command line and wins.
pub fn resolve(
    known: &[Database],
    args: &[String],
    rest: After,
    server: Option<&str>,
) -> Result<(Database, Vec<String>)> {
    let plain = |name: &str| Database {
        name: name.to_owned(),
        ..Database::default()
    };
    let find = |name: &str| known.iter().find(|d| d.name == name).cloned();
    let required = match rest {
        After::Required(name) | After::RequiredOfAny(name) => Some(name),
        After::None | After::Optional => None,
    };
    let first = args.first().map(String::as_str);
    let (mut database, rest_args) = match (known, first) {
        // No project: the first argument is the database.
        ([], None) => return Err(missing(&[&["DATABASE"], required.as_slice()].concat())),
        ([], Some(first)) => (plain(first), &args[1..]),
        // One database: it may be left out.
        ([only], first) => match (first, rest) {
            (Some(first), _) if first == only.name => (only.clone(), &args[1..]),
            (Some(first), After::None) => (plain(first), &args[1..]),
            (first, _) => {
                let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                let is_name = |word: &&str| word.chars().all(is_letter);
                let database = Database {
                    instead_of: first.filter(is_name).map(str::to_owned),
                    ..only.clone()
                };
                (database, args)
            }
        },
        // Several: it must be given.
        (_, None) => return Err(ambiguous(known, "<database>")),
        (_, Some(first)) => match (find(first), rest) {
            (Some(database), _) => (database, &args[1..]),
            (None, After::None) => (plain(first), &args[1..]),
            (None, After::RequiredOfAny(_)) if args.len() >= 2 => (plain(first), &args[1..]),
            (None, _) => return Err(ambiguous(known, first)),
        },
    };
    if let (Some(name), true) = (required, rest_args.is_empty()) {
        return Err(missing(&[name]));
    }
    if let (After::None, [first, ..]) = (rest, rest_args) {
        return Err(Error::Usage(format!("unexpected argument '{first}' found")));
    }
    if server.is_some() {
        database.server = server.map(str::to_owned);
        database.server_place = None;
    }
    Ok((database, rest_args.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: After = After::RequiredOfAny("QUERY");
    const FUNCTION: After = After::Required("FUNCTION");

    fn run(known: &[&str], args: &[&str], rest: After) -> Result<(String, Vec<String>)> {
        let known: Vec<_> = known
            .iter()
            .map(|n| Database {
                name: (*n).into(),
                server: Some(format!("{n}-server")),
                ..Database::default()
            })
            .collect();
        let args: Vec<_> = args.iter().map(|a| (*a).to_owned()).collect();
        let (database, rest) = resolve(&known, &args, rest, None)?;
        Ok((
            format!("{}@{}", database.name, database.server.unwrap_or_default()),
            rest,
        ))
    }

    fn ok(known: &[&str], args: &[&str], rest: After) -> (String, Vec<String>) {
        run(known, args, rest).unwrap_or_else(|e| panic!("{known:?} {args:?}: {e}"))
    }

    #[test]
    fn without_a_project() {
        assert_eq!(ok(&[], &["db"], After::None).0, "db@");
        assert_eq!(
            ok(&[], &["db", "q", "r"], QUERY),
            ("db@".into(), vec!["q".into(), "r".into()])
        );
        assert!(run(&[], &[], After::None)
            .expect_err("missing")
            .to_string()
            .contains("<DATABASE>"));
        assert!(run(&[], &["db"], QUERY)
            .expect_err("missing")
            .to_string()
            .contains("<QUERY>"));
        assert_eq!(
            run(&[], &["db", "x"], After::None)
                .expect_err("too much")
                .exit_code(),
            2
        );
    }

    #[test]
    fn with_one_database() {
        assert_eq!(ok(&["t"], &[], After::None).0, "t@t-server");
        assert_eq!(ok(&["t"], &["t"], After::None).0, "t@t-server");
        assert_eq!(ok(&["t"], &["u"], After::None).0, "u@");
        assert_eq!(
            ok(&["t"], &["t", "q"], QUERY),
            ("t@t-server".into(), vec!["q".into()])
        );
        assert_eq!(
            ok(&["t"], &["select", "1"], QUERY),
            ("t@t-server".into(), vec!["select".into(), "1".into()])
        );
        assert_eq!(
            ok(&["t"], &[], After::Optional),
            ("t@t-server".into(), vec![])
        );
        assert!(run(&["t"], &["t"], FUNCTION).is_err());
    }

    #[test]
    fn a_name_that_was_not_taken_for_one_is_explained() {
        let known = [Database {
            name: "t".into(),
            ..Database::default()
        }];
        let explained = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(|a| (*a).to_owned()).collect();
            let (database, _) = resolve(&known, &args, FUNCTION, None).expect("a database");
            database.explain(Error::coded("LC0617", "no")).to_string()
        };
        assert_eq!(explained(&["t", "f"]), "no [LC0617]");
        assert_eq!(explained(&["addUser", "1"]), "no [LC0617]");
        let text = explained(&["other", "f"]);
        assert!(
            text.starts_with("no\n") && text.contains("--no-config"),
            "{text}"
        );
    }

    #[test]
    fn with_several_databases() {
        assert!(run(&["a", "b"], &[], After::None).is_err());
        assert_eq!(ok(&["a", "b"], &["b"], After::None).0, "b@b-server");
        assert_eq!(ok(&["a", "b"], &["x"], After::None).0, "x@");
        assert_eq!(ok(&["a", "b"], &["x", "q"], QUERY).0, "x@");
        let error = run(&["a", "b"], &["q"], QUERY)
            .expect_err("which?")
            .to_string();
        assert!(
            error.starts_with("Multiple databases found in config: a, b. Please specify"),
            "{error}"
        );
        assert!(run(&["a", "b"], &["x", "f"], FUNCTION).is_err());
        assert!(run(&["a", "b"], &["x"], After::Optional).is_err());
    }
}
