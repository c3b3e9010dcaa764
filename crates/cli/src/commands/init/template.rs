//! The templates that this program brings along, and those in git repositories.

use std::path::Path;
use std::process::Command;

use include_dir::{include_dir, Dir};
use serde_json::{json, Value};

use super::Plan;
use crate::error::{Error, Result};

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates");

/// In the order of the list.
const DESCRIPTIONS: [(&str, &str); 8] = [
    ("basic-ts", "TypeScript module, client that runs in Node"),
    ("basic-rs", "Rust module, Rust client"),
    ("basic-cpp", "C++ module, no client"),
    ("basic-csharp", "C# module (.NET 8), no client"),
    (
        "basic-csharp-net10",
        "C# module (.NET 10, experimental), no client",
    ),
    (
        "browser-ts",
        "TypeScript module, page without a framework (Vite)",
    ),
    (
        "chat-react-ts",
        "TypeScript module, chat with presence (React, Vite)",
    ),
    (
        "nodejs-ts",
        "TypeScript module, command-line program (Node)",
    ),
];

/// One of our templates.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    directory: &'static Dir<'static>,
}

/// What `init -t` prints.
pub fn list() -> String {
    let mut text = String::from("Available templates:\n");
    for (name, description) in DESCRIPTIONS {
        text.push_str(&format!("  {name:<18} {description}\n"));
    }
    text
}

pub fn list_json() -> Value {
    let templates: Vec<Value> = DESCRIPTIONS
        .iter()
        .map(|(name, description)| json!({ "name": name, "description": description }))
        .collect();
    json!({ "templates": templates })
}

impl Template {
    pub fn find(name: &str) -> Option<Self> {
        DESCRIPTIONS.iter().find(|(known, _)| *known == name)?;
        Some(Self {
            directory: TEMPLATES.get_dir(name)?,
        })
    }

    pub fn write(&self, plan: &Plan) -> Result<()> {
        write_directory(self.directory, self.directory.path(), plan)
    }
}

fn write_directory(directory: &Dir<'_>, root: &Path, plan: &Plan) -> Result<()> {
    for file in directory.files() {
        let relative = file.path().strip_prefix(root).unwrap_or(file.path());
        if plan.server_only && !relative.starts_with("spacetimedb") {
            continue;
        }
        // Names that git or cargo would act on where the templates are.
        let name = match relative.file_name().and_then(|n| n.to_str()) {
            Some("_gitignore") => ".gitignore",
            Some("Cargo.toml.template") => "Cargo.toml",
            Some(name) => name,
            None => continue,
        };
        let path = plan.directory.join(relative.with_file_name(name));
        let contents = match file.contents_utf8() {
            Some(text) => text.replace("{{database}}", &plan.database).into_bytes(),
            None => file.contents().to_vec(),
        };
        let write = || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(&path, contents)
        };
        write().map_err(|e| Error::file("write", &path, e))?;
    }
    for below in directory.dirs() {
        write_directory(below, root, plan)?;
    }
    Ok(())
}

/// Clones a repository without its history.
pub fn clone(url: &str, plan: &Plan) -> Result<()> {
    let status = Command::new("git")
        .args(["clone", "--depth", "1", "--", url])
        .arg(&plan.directory)
        .stdout(crate::output::of_children())
        .status()
        .map_err(|e| {
            Error::caused(
                "LC0637",
                "cannot run git, which templates from repositories need",
                e,
            )
        })?;
    if !status.success() {
        return Err(Error::coded(
            "LC0637",
            format!("git could not clone {url}; its message is above"),
        ));
    }
    let history = plan.directory.join(".git");
    std::fs::remove_dir_all(&history).map_err(|e| Error::file("delete", &history, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_listed_and_there() {
        let mut there: Vec<_> = TEMPLATES
            .dirs()
            .map(|d| d.path().display().to_string())
            .collect();
        let mut listed: Vec<_> = DESCRIPTIONS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        there.sort();
        listed.sort();
        assert_eq!(there, listed);
        for name in listed {
            let template = Template::find(&name).expect("found");
            let has_module = template
                .directory
                .dirs()
                .any(|d| d.path().ends_with("spacetimedb"));
            assert!(has_module, "{name}");
        }
    }
}
