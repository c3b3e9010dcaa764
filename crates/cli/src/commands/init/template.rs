//! The templates that this program brings along.

use include_dir::{include_dir, Dir};
use serde_json::{json, Value};

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates");

/// The directory of what several templates have in common.
const SHARED: &str = "shared";

/// One of our templates: the directory of its name, and parts that it shares with others.
#[derive(Debug)]
pub struct Template {
    name: &'static str,
    description: &'static str,
    /// Directories in `shared/`. A file that the template has itself is not taken from them.
    parts: &'static [&'static str],
    /// The file to read first.
    start: &'static str,
    /// Where `spacetime dev` shows the client.
    shown: &'static str,
}

const fn template(
    name: &'static str,
    description: &'static str,
    parts: &'static [&'static str],
    start: &'static str,
    shown: &'static str,
) -> Template {
    Template {
        name,
        description,
        parts,
        start,
        shown,
    }
}

const CPP: &str = "spacetimedb/src/lib.cpp";
const CSHARP: &str = "spacetimedb/Lib.cs";
const MODULE: &str = "`spacetime subscribe \"SELECT * FROM person\"`";
const TERMINAL: &str = "The client";
const VITE: &str = "http://localhost:5173";
const PORT_3001: &str = "http://localhost:3001";
const PORT_8000: &str = "http://localhost:8000";

/// In the order of the list.
#[rustfmt::skip]
static KNOWN: [Template; 22] = [
    template("basic-ts", "TypeScript module, client that runs in Node", &["ts", "node"], "src/main.ts", TERMINAL),
    template("basic-rs", "Rust module, Rust client", &[], "src/main.rs", TERMINAL),
    template("basic-cpp", "C++ module, no client", &[], CPP, MODULE),
    template("basic-csharp", "C# module (.NET 8), no client", &[], CSHARP, MODULE),
    template("basic-csharp-net10", "C# module (.NET 10, experimental), no client", &[], CSHARP, MODULE),
    template("browser-ts", "TypeScript module, page without a framework (Vite)", &["ts", "page", "style", "html", "plain"], "src/people.ts", VITE),
    template("chat-react-ts", "TypeScript module, chat with presence (React, Vite)", &["ts", "page", "vite-tsx"], "src/Chat.tsx", VITE),
    template("game-ts", "TypeScript module, small game for many players on a canvas (Vite)", &["ts", "page"], "spacetimedb/src/index.ts", VITE),
    template("react-ts", "TypeScript module, page with React (Vite)", &["ts", "page", "style", "vite-tsx", "react"], "src/People.tsx", VITE),
    template("vue-ts", "TypeScript module, page with Vue (Vite)", &["ts", "page", "style", "vite-ts", "vue"], "src/People.vue", VITE),
    template("svelte-ts", "TypeScript module, page with Svelte (Vite)", &["ts", "page", "style", "vite-ts"], "src/People.svelte", VITE),
    template("solid-ts", "TypeScript module, page with Solid (Vite)", &["ts", "page", "style", "vite-tsx"], "src/People.tsx", VITE),
    template("angular-ts", "TypeScript module, page with Angular", &["ts", "page", "style"], "src/people.ts", "http://localhost:4200"),
    template("nextjs-ts", "TypeScript module, page with Next.js", &["ts", "page", "style", "react"], "src/People.tsx", PORT_3001),
    template("remix-ts", "TypeScript module, page with React Router, the successor of Remix", &["ts", "page", "style", "react"], "src/People.tsx", VITE),
    template("nuxt-ts", "TypeScript module, page with Nuxt", &["ts", "page", "style", "vue"], "src/People.vue", PORT_3001),
    template("tanstack-ts", "TypeScript module, page with TanStack Router and Query (React, Vite)", &["ts", "page", "style", "vite-tsx"], "src/People.tsx", VITE),
    template("astro-ts", "TypeScript module, page with Astro", &["ts", "page", "style", "plain"], "src/people.ts", "http://localhost:4321"),
    template("bun-ts", "TypeScript module, page that Bun bundles and serves", &["ts", "page", "style", "html", "plain"], "src/people.ts", PORT_8000),
    template("deno-ts", "TypeScript module, server of pages in Deno", &["ts", "style"], "src/main.ts", PORT_8000),
    template("nodejs-ts", "TypeScript module, command-line program (Node)", &["ts", "node"], "src/main.ts", TERMINAL),
    template("console-rs", "TypeScript module, command-line program (Rust)", &["ts"], "src/main.rs", TERMINAL),
];

/// What `init -t` prints.
pub fn list() -> String {
    let lines = KNOWN
        .iter()
        .map(|t| format!("  {:<18} {}\n", t.name, t.description));
    "Available templates:\n".to_owned() + &lines.collect::<String>()
}

pub fn list_json() -> Value {
    let templates = KNOWN.iter();
    let templates = templates.map(|t| json!({ "name": t.name, "description": t.description }));
    json!({ "templates": templates.collect::<Vec<_>>() })
}

impl Template {
    pub fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// What it is made of. The first directory that has a file of some name is where that is taken from.
    pub fn directories(&self) -> impl Iterator<Item = &'static Dir<'static>> + '_ {
        let parts = self.parts.iter().map(|part| format!("{SHARED}/{part}"));
        let all = std::iter::once(self.name.to_owned()).chain(parts);
        all.filter_map(|path| TEMPLATES.get_dir(path))
    }

    /// The text about a project that was made from it.
    pub fn readme(&self, project: &str) -> String {
        include_str!("readme.md")
            .replace("{{project}}", project)
            .replace("{{description}}", self.description)
            .replace("{{start}}", self.start)
            .replace("{{shown}}", self.shown)
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
        let mut listed: Vec<_> = KNOWN.iter().map(|known| known.name.to_owned()).collect();
        listed.push(SHARED.to_owned());
        there.sort();
        listed.sort();
        assert_eq!(there, listed);
    }

    #[test]
    fn every_template_has_its_parts_a_module_and_what_to_read_first() {
        let mut unused: Vec<_> = TEMPLATES
            .get_dir(SHARED)
            .expect("there")
            .dirs()
            .map(Dir::path)
            .collect();
        for known in &KNOWN {
            let directories: Vec<_> = known.directories().collect();
            assert_eq!(directories.len(), 1 + known.parts.len(), "{}", known.name);
            let has = |path: &str| {
                directories
                    .iter()
                    .any(|d| d.get_entry(d.path().join(path)).is_some())
            };
            assert!(has("spacetimedb"), "{}", known.name);
            assert!(has(known.start), "{}", known.name);
            assert!(!known.readme("x").contains("{{"), "{}", known.name);
            unused.retain(|part| !directories.iter().any(|d| d.path() == *part));
        }
        assert!(unused.is_empty(), "{unused:?}");
    }
}
