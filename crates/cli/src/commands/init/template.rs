//! The templates that this program brings along.

use include_dir::{include_dir, Dir};
use serde_json::{json, Value};

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
    pub(super) directory: &'static Dir<'static>,
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
