//! `spacetime.json`: the configuration of a project (07 §6).

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The merged configuration of a project.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// Where `spacetime.json` is; relative paths in it start here.
    pub directory: PathBuf,
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
    root: Map<String, Value>,
    /// What each of the files says by itself: mistakes are told with the file that they are in.
    layers: Vec<Map<String, Value>>,
}

/// One database of a project, with everything it inherits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    pub database: Option<String>,
    pub server: Option<String>,
    pub module_path: Option<PathBuf>,
    pub bin_path: Option<PathBuf>,
    pub js_path: Option<PathBuf>,
    pub build_options: Option<String>,
    pub num_replicas: Option<u8>,
    pub break_clients: Option<bool>,
    pub anonymous: Option<bool>,
    pub parent: Option<String>,
    pub organization: Option<String>,
    /// The bindings to generate; children do not inherit them.
    pub generate: Vec<GenerateEntry>,
}

/// One entry of `generate` (07 §6.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerateEntry {
    pub language: String,
    pub out_dir: Option<PathBuf>,
    pub module_path: Option<PathBuf>,
    pub bin_path: Option<PathBuf>,
    pub js_path: Option<PathBuf>,
    pub build_options: Option<String>,
    pub include_private: bool,
    /// TypeScript: the npm package that bindings import from.
    pub client_package: Option<String>,
    /// C#: the namespace.
    pub namespace: Option<String>,
}

const FILE: &str = "spacetime.json";
/// Keys that say which module a target is: a child that sets one inherits none of them.
const MODULE_KEYS: [&str; 5] = ["module_path", "wasm_file", "js_file", "bin_path", "js_path"];
const NOT_INHERITED: [&str; 3] = ["generate", "children", "dev"];
const KNOWN: [&str; 17] = [
    "database",
    "server",
    "module_path",
    "wasm_file",
    "js_file",
    "bin_path",
    "js_path",
    "build_options",
    "num_replicas",
    "break_clients",
    "anon_identity",
    "anonymous",
    "parent",
    "organization",
    "native_aot",
    "dotnet_version",
    "generate",
];

const GENERATE_KEYS: [&str; 16] = [
    "language",
    "out_dir",
    "uproject_dir",
    "module_path",
    "wasm_file",
    "js_file",
    "bin_path",
    "js_path",
    "namespace",
    "unreal_module_name",
    "module_name",
    "module_prefix",
    "build_options",
    "dotnet_version",
    "include_private",
    "client_package",
];

impl Project {
    /// Looks for `spacetime.json` in `start` and its parents, and merges the layers beside it.
    pub fn find(start: &Path, environment: Option<&str>) -> Result<Option<Self>> {
        let start = std::path::absolute(start).map_err(|e| Error::file("find", start, e))?;
        match start
            .ancestors()
            .find(|directory| directory.join(FILE).is_file())
        {
            Some(directory) => Self::load(directory, environment).map(Some),
            None => Ok(None),
        }
    }

    fn load(directory: &Path, environment: Option<&str>) -> Result<Self> {
        let mut names = vec![FILE.to_owned(), "spacetime.local.json".to_owned()];
        if let Some(environment) = environment {
            names.push(format!("spacetime.{environment}.json"));
            names.push(format!("spacetime.{environment}.local.json"));
        }
        let mut project = Self {
            directory: directory.to_owned(),
            files: Vec::new(),
            root: Map::new(),
            layers: Vec::new(),
        };
        for name in names {
            let path = directory.join(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => {
                    let layer = parse_layer(&path, &text)?;
                    merge(&mut project.root, layer.clone());
                    project.layers.push(layer);
                    project.files.push(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::file("read", &path, error)),
            }
        }
        Ok(project)
    }

    /// The root first, then its children depth first.
    pub fn targets(&self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        self.collect(&self.root, &Map::new(), true, &mut targets)?;
        Ok(targets)
    }

    /// The names of the databases with their servers, for commands that need no more: what else the file says, right or
    /// wrong, is none of their business (07 §6.2).
    pub fn databases(&self) -> Result<Vec<(String, Option<String>)>> {
        let mut databases = Vec::new();
        self.collect_databases(&self.root, None, None, &mut databases)?;
        Ok(databases)
    }

    fn collect_databases(
        &self,
        own: &Map<String, Value>,
        database: Option<&str>,
        server: Option<&str>,
        databases: &mut Vec<(String, Option<String>)>,
    ) -> Result<()> {
        let (own_database, own_server) = (self.text(own, "database")?, self.text(own, "server")?);
        let database = own_database.as_deref().or(database);
        let server = own_server.as_deref().or(server);
        if let Some(database) = database {
            databases.push((database.to_owned(), server.map(str::to_owned)));
        }
        let children = own.get("children").and_then(Value::as_array);
        for child in children.into_iter().flatten().filter_map(Value::as_object) {
            self.collect_databases(child, database, server, databases)?;
        }
        Ok(())
    }

    fn collect(
        &self,
        own: &Map<String, Value>,
        inherited: &Map<String, Value>,
        is_root: bool,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        let sets_module = MODULE_KEYS.iter().any(|key| own.contains_key(*key));
        let mut settings: Map<String, Value> = inherited
            .iter()
            .filter(|(key, _)| !(sets_module && MODULE_KEYS.contains(&key.as_str())))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for (key, value) in own {
            if !KNOWN.contains(&key.as_str()) && key != "children" && !(is_root && key == "dev") {
                let known: Vec<String> = KNOWN
                    .iter()
                    .chain(&["children"])
                    .map(|k| k.replace('_', "-"))
                    .collect();
                return Err(self.bad_key(
                    key,
                    format!(
                        "Config key '{}' is not supported in the config file. Available keys: {}",
                        key.replace('_', "-"),
                        known.join(", ")
                    ),
                ));
            }
            if key == "dev" {
                self.check_dev(value)?;
            }
            if !NOT_INHERITED.contains(&key.as_str()) {
                settings.insert(key.clone(), value.clone());
            }
        }
        targets.push(Target {
            generate: self.generate_entries(own.get("generate"))?,
            ..self.target(&settings)?
        });
        match own.get("children") {
            None | Some(Value::Null) => {}
            Some(Value::Array(children)) => {
                for child in children {
                    let Value::Object(child) = child else {
                        return Err(self.bad("every element of `children` must be an object"));
                    };
                    self.collect(child, &settings, false, targets)?;
                }
            }
            Some(_) => return Err(self.bad("`children` must be an array")),
        }
        Ok(())
    }

    fn check_dev(&self, value: &Value) -> Result<()> {
        let ok = value
            .as_object()
            .is_some_and(|dev| dev.iter().all(|(key, v)| key == "run" && v.is_string()));
        if ok {
            Ok(())
        } else {
            Err(self
                .bad("`dev` must be an object with the member `run`, a string, and nothing else"))
        }
    }

    /// The command that starts the client while `spacetime dev` runs.
    pub fn dev_run(&self) -> Option<&str> {
        self.root.get("dev")?.get("run")?.as_str()
    }

    fn generate_entries(&self, value: Option<&Value>) -> Result<Vec<GenerateEntry>> {
        let entries = match value {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(self.bad("`generate` must be an array of objects")),
        };
        let mut parsed = Vec::new();
        for entry in entries {
            let Value::Object(entry) = entry else {
                return Err(self.bad("every element of `generate` must be an object"));
            };
            let entry = normalise(entry.clone());
            if let Some(key) = entry
                .keys()
                .find(|key| !GENERATE_KEYS.contains(&key.as_str()))
            {
                let known: Vec<String> =
                    GENERATE_KEYS.iter().map(|k| k.replace('_', "-")).collect();
                return Err(self.bad(format!(
                    "Config key '{}' is not supported in a `generate` entry. Available keys: {}",
                    key.replace('_', "-"),
                    known.join(", ")
                )));
            }
            let text = |key: &str| self.text(&entry, key);
            let path = |key: &str| Ok::<_, Error>(text(key)?.map(|p| self.join(&p)));
            parsed.push(GenerateEntry {
                language: text("language")?
                    .ok_or_else(|| self.bad("a `generate` entry needs the key `language`"))?,
                out_dir: path("out_dir")?,
                module_path: path("module_path")?,
                bin_path: path("bin_path")?.or(path("wasm_file")?),
                js_path: path("js_path")?.or(path("js_file")?),
                build_options: text("build_options")?,
                include_private: self.flag(&entry, "include_private")?.unwrap_or(false),
                client_package: text("client_package")?,
                namespace: text("namespace")?,
            });
        }
        Ok(parsed)
    }

    fn text(&self, settings: &Map<String, Value>, key: &str) -> Result<Option<String>> {
        match settings.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong_type(key, "a string")),
        }
    }

    fn flag(&self, settings: &Map<String, Value>, key: &str) -> Result<Option<bool>> {
        match settings.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong_type(key, "true or false")),
        }
    }

    fn target(&self, settings: &Map<String, Value>) -> Result<Target> {
        let text = |key: &str| self.text(settings, key);
        let flag = |key: &str| self.flag(settings, key);
        let path = |key: &str| Ok(text(key)?.map(|p| self.join(&p)));
        if let Some(version) = text("dotnet_version")? {
            if !matches!(version.as_str(), "8" | "10") {
                return Err(self.wrong_type("dotnet_version", "\"8\" or \"10\""));
            }
        }
        let csharp = crate::build::csharp_options(
            flag("native_aot")?.unwrap_or(false),
            text("dotnet_version")?.as_deref(),
        );
        let num_replicas = match settings.get("num_replicas") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_u64()
                    .and_then(|n| u8::try_from(n).ok())
                    .ok_or_else(|| self.wrong_type("num_replicas", "a number from 0 to 255"))?,
            ),
        };
        Ok(Target {
            database: text("database")?,
            server: text("server")?,
            module_path: path("module_path")?,
            bin_path: path("bin_path")?.or(path("wasm_file")?),
            js_path: path("js_path")?.or(path("js_file")?),
            build_options: crate::build::with_options(text("build_options")?, &csharp),
            num_replicas,
            break_clients: flag("break_clients")?,
            anonymous: flag("anonymous")?.or(flag("anon_identity")?),
            parent: text("parent")?,
            organization: text("organization")?,
            generate: Vec::new(),
        })
    }

    /// A path of the file as one that can be shown: `./module` leaves no `/./` behind.
    fn join(&self, path: &str) -> PathBuf {
        self.directory.join(path).components().collect()
    }

    fn wrong_type(&self, key: &str, want: &str) -> Error {
        self.bad_key(key, format!("`{}` must be {want}", key.replace('_', "-")))
    }

    /// An error about a key, with the last of the files that has it.
    fn bad_key(&self, key: &str, message: String) -> Error {
        let files = self.files.iter().zip(&self.layers).rev();
        let file = files
            .filter(|(_, layer)| has_key(layer, key))
            .map(|(file, _)| file.clone())
            .next()
            .unwrap_or_else(|| self.directory.join(FILE));
        Error::coded("LC0607", format!("{}: {message}", file.display()))
    }

    fn bad(&self, message: impl std::fmt::Display) -> Error {
        Error::coded(
            "LC0607",
            format!("{}: {message}", self.directory.join(FILE).display()),
        )
    }
}

/// True if the key is somewhere in a file.
fn has_key(layer: &Map<String, Value>, key: &str) -> bool {
    layer.contains_key(key)
        || layer.values().any(|value| {
            let children = value.as_array().into_iter().flatten();
            children
                .filter_map(Value::as_object)
                .any(|child| has_key(&normalise(child.clone()), key))
        })
}

/// Parses one file; keys with `-` and `_` are the same, at every level that holds targets.
fn parse_layer(path: &Path, text: &str) -> Result<Map<String, Value>> {
    let value: Value = json5::from_str(text).map_err(|e| {
        Error::caused(
            "LC0607",
            format!(
                "{} is not valid JSON5. Correct it, or pass --no-config to do without it",
                path.display()
            ),
            e,
        )
    })?;
    match value {
        Value::Object(map) => Ok(normalise(map)),
        _ => Err(Error::coded(
            "LC0607",
            format!("{} must hold an object: {{ … }}", path.display()),
        )),
    }
}

fn normalise(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter()
        // A left-over of older tools.
        .filter(|(key, _)| key != "_source-config")
        .map(|(key, value)| {
            let key = key.replace('-', "_");
            let value = match value {
                Value::Array(children) if key == "children" => Value::Array(
                    children
                        .into_iter()
                        .map(|child| match child {
                            Value::Object(child) => Value::Object(normalise(child)),
                            other => other,
                        })
                        .collect(),
                ),
                other => other,
            };
            (key, value)
        })
        .collect()
}

/// Later layers win key by key; `children` are merged element by element, never made longer.
fn merge(base: &mut Map<String, Value>, overlay: Map<String, Value>) {
    for (key, value) in overlay {
        match (base.get_mut(&key), value) {
            (Some(Value::Array(children)), Value::Array(overlays)) if key == "children" => {
                for (child, overlay) in children.iter_mut().zip(overlays) {
                    match (child, overlay) {
                        (Value::Object(child), Value::Object(overlay)) => merge(child, overlay),
                        (child, overlay) => *child = overlay,
                    }
                }
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// True if `name` matches a pattern with `*` and `?`.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == name[n]))
        {
            (p, n) = (p + 1, n + 1);
        } else if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if let Some((star_p, star_n)) = star {
            // Let the last star swallow one character more.
            (p, n) = (star_p + 1, star_n + 1);
            star = Some((star_p, star_n + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)], environment: Option<&str>) -> Result<Project> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).expect("written");
        }
        let below = directory.path().join("a/b");
        std::fs::create_dir_all(&below).expect("created");
        Ok(Project::find(&below, environment)?.expect("found upwards"))
    }

    #[test]
    fn layers_and_children() {
        let project = project(
            &[
                ("spacetime.json", "{ // JSON5\n database: 'a', server: 'local', 'module-path': './m', children: [{database: 'b'}, {database: 'c', js_file: 'x.js'}] }"),
                ("spacetime.local.json", "{\"children\": [{\"server\": \"other\"}], \"_source-config\": 1}"),
                ("spacetime.prod.json", "{\"database\": \"A\"}"),
            ],
            Some("prod"),
        )
        .expect("valid");
        assert_eq!(project.files.len(), 3);
        let targets = project.targets().expect("valid");
        let seen: Vec<_> = targets
            .iter()
            .map(|t| (t.database.as_deref(), t.server.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                (Some("A"), Some("local")),
                (Some("b"), Some("other")),
                (Some("c"), Some("local"))
            ]
        );
        assert_eq!(
            targets[1].module_path.as_deref(),
            Some(project.directory.join("./m").as_path())
        );
        assert_eq!(
            (
                targets[2].module_path.as_deref(),
                targets[2].js_path.is_some()
            ),
            (None, true)
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("{", "not valid JSON5"),
            ("[]", "must hold an object"),
            ("{databse: 'x'}", "Config key 'databse' is not supported in the config file. Available keys: database, "),
            ("{'num-replicas': 300}", "`num-replicas` must be"),
            ("{'dotnet-version': 8}", "`dotnet-version` must be"),
            ("{dev: {run: 'x', more: 1}}", "`dev` must be"),
            ("{children: [1]}", "children"),
        ] {
            let error = project(&[("spacetime.json", text)], None).and_then(|p| p.targets()).expect_err(text).to_string();
            assert!(error.contains(part) && error.contains("[LC0607]"), "{error}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_file() {
        let files = [
            ("spacetime.json", "{database: 'a', server: 'x'}"),
            ("spacetime.local.json", "{children: [], sever: 'y'}"),
        ];
        let project = project(&files, None).expect("readable");
        let error = project.targets().expect_err("a typo").to_string();
        assert!(
            error.contains("spacetime.local.json: Config key 'sever'"),
            "{error}"
        );
        // Who only wants to know which database is meant is not kept by it.
        assert_eq!(
            project.databases().expect("names"),
            [("a".to_owned(), Some("x".to_owned()))]
        );
    }

    #[test]
    fn globs() {
        for (pattern, name, want) in [
            ("*", "x", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a?c", "abc", true),
            ("", "", true),
            ("**b", "ab", true),
        ] {
            assert_eq!(glob_matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
