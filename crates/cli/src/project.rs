//! `spacetime.json`: the configuration of a project (07 §6). `layers` reads the files, `place` finds a mistake in them,
//! `edit` changes them.

pub mod edit;
mod layers;
mod place;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Error, FileResult as _, Result};
use crate::output::remark;
use crate::paths::text_if_there;
use crate::schema::similar;
pub use layers::parse_json5;
use layers::{merge, normalise, Layer};
use place::Step;

/// The merged configuration of a project.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// Where `spacetime.json` is; relative paths in it start here.
    pub directory: PathBuf,
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
    root: Map<String, Value>,
    layers: Vec<Layer>,
}

/// Some of a project's settings, and where in its files they stand.
#[derive(Clone, Debug)]
struct Settings<'a> {
    project: &'a Project,
    map: Map<String, Value>,
    at: Vec<Step>,
}

/// One database of a project, with everything it inherits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    /// The way to it in the files.
    pub(crate) at: Vec<Step>,
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
    /// Variables of the environment, as texts.
    pub env: BTreeMap<String, String>,
    /// Whose reducers the module's outbox tables call.
    pub dependencies: Vec<Dependency>,
    /// The bindings to generate; children do not inherit them.
    pub generate: Vec<GenerateEntry>,
}

/// Another database that a module sends messages to (07 §8.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The module of the bindings, in Rust.
    pub name: String,
    /// The name or identity of the database.
    pub database: String,
}

/// A database name with the server it lives on, if the project or the user says so: what commands that only look for a database
/// read of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    pub name: String,
    pub server: Option<String>,
    /// Where the project says so, if it does.
    pub server_place: Option<String>,
    /// The first argument, which could be a database's name, where the project's database was taken instead.
    pub(crate) instead_of: Option<String>,
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
/// Keys that say which module a target is: a child that sets one inherits none of them, and no dependencies.
const MODULE_KEYS: [&str; 5] = ["module_path", "wasm_file", "js_file", "bin_path", "js_path"];
const NOT_INHERITED: [&str; 3] = ["generate", "children", "dev"];
/// Keys of a target, `children` and `dev` left out.
const KNOWN: &str = "database server module_path wasm_file js_file bin_path js_path build_options num_replicas break_clients \
                     anon_identity anonymous parent organization native_aot dotnet_version env dependencies generate";
const GENERATE_KEYS: &str = "language out_dir uproject_dir module_path wasm_file js_file bin_path js_path namespace \
                             unreal_module_name module_name module_prefix build_options dotnet_version include_private \
                             client_package";

fn has_word(words: &str, key: &str) -> bool {
    words.split(' ').any(|word| word == key)
}

impl Project {
    /// Looks for `spacetime.json` in `start` and its parents, and merges the layers beside it.
    pub fn find(start: &Path, environment: Option<&str>) -> Result<Option<Self>> {
        let start = std::path::absolute(start).or_cannot("find", start)?;
        let mut directories = start.ancestors();
        let found = directories.find(|directory| directory.join(FILE).is_file());
        let load = |found| Self::load(found, environment);
        found.map(load).transpose()
    }

    /// The same for a command that may be told to look at none.
    pub fn find_unless(
        no_config: bool,
        start: &Path,
        environment: Option<&str>,
    ) -> Result<Option<Self>> {
        match no_config {
            true => Ok(None),
            false => Self::find(start, environment),
        }
    }

    /// Says which files are used.
    pub fn announce(&self) {
        for file in &self.files {
            remark!("Using configuration from {}", file.display());
        }
    }

    /// The files that were read, as texts.
    pub fn file_names(&self) -> Vec<String> {
        let files = self.files.iter();
        files.map(|file| file.display().to_string()).collect()
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
            if let Some(text) = text_if_there(&path)? {
                let layer = Layer::parse(&path, text)?;
                merge(&mut project.root, layer.settings.clone());
                project.layers.push(layer);
                project.files.push(path);
            }
        }
        project.warn_of_missing_layer(environment);
        Ok(project)
    }

    /// A mistyped `--env` would mean the settings of all environments. `dev` need not be there (07 §6.1).
    fn warn_of_missing_layer(&self, environment: Option<&str>) {
        let Some(name) = environment.filter(|name| *name != "dev") else {
            return;
        };
        let layers = ["", ".local"].map(|kind| format!("spacetime.{name}{kind}.json"));
        let is_there = |layer: &String| self.files.iter().any(|file| file.ends_with(layer));
        if !layers.iter().any(is_there) {
            let (directory, [shared, local]) = (self.directory.display(), &layers);
            remark!("warning: there is neither {shared} nor {local} in {directory}; --env {name} changes nothing");
        }
    }

    /// The root first, then its children depth first.
    pub fn targets(&self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        self.collect(&self.settings(), &Map::new(), &mut targets)?;
        Ok(targets)
    }

    fn settings(&self) -> Settings<'_> {
        Settings {
            project: self,
            map: self.root.clone(),
            at: Vec::new(),
        }
    }

    /// The names of the databases with their servers, for commands that need no more: what else the file says, right or
    /// wrong, is none of their business (07 §6.2).
    pub fn databases(&self) -> Result<Vec<Database>> {
        let mut databases = Vec::new();
        let settings = self.settings();
        let known = format!("{KNOWN} children dev");
        for key in settings.map.keys().filter(|key| !has_word(&known, key)) {
            // It may have been meant to be one that counts here.
            let error = settings.unknown_key(key, "the config file", &known);
            remark!("warning: {error}");
        }
        collect_databases(&settings, None, None, &mut databases)?;
        Ok(databases)
    }

    fn collect(
        &self,
        own: &Settings<'_>,
        inherited: &Map<String, Value>,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        let sets_module = MODULE_KEYS.iter().any(|key| own.map.contains_key(*key));
        let mut settings = inherited.clone();
        let is_of_module = |key: &str| MODULE_KEYS.contains(&key) || key == "dependencies";
        settings.retain(|key, _| !(sets_module && is_of_module(key)));
        let is_root = own.at.is_empty();
        for (key, value) in &own.map {
            let is_known = has_word(KNOWN, key) || key == "children" || (is_root && key == "dev");
            if !is_known {
                let known = format!("{KNOWN} children");
                return Err(own.unknown_key(key, "the config file", &known));
            }
            if key == "dev" {
                own.check_dev(value)?;
            }
            if !NOT_INHERITED.contains(&key.as_str()) {
                settings.insert(key.clone(), value.clone());
            }
        }
        let with_inherited = Settings {
            map: settings,
            ..own.clone()
        };
        targets.push(Target {
            generate: own.generate_entries()?,
            ..with_inherited.target()?
        });
        for child in own.elements("children")? {
            self.collect(&child, &with_inherited.map, targets)?;
        }
        Ok(())
    }

    /// True if a file says for some database which module it is made from.
    pub fn names_a_module(&self) -> Result<bool> {
        let mut paths = self
            .targets()?
            .into_iter()
            .flat_map(|target| [target.module_path, target.bin_path, target.js_path]);
        Ok(paths.any(|path| path.is_some()))
    }

    /// The command that starts the client while `spacetime dev` runs.
    pub fn dev_run(&self) -> Option<&str> {
        self.root.get("dev")?.get("run")?.as_str()
    }

    /// A path of the file as one that can be shown: `./module` leaves no `/./` behind.
    fn join(&self, path: &str) -> PathBuf {
        self.directory.join(path).components().collect()
    }

    /// Where the files say this about a target, or about what it inherits from: `file:line:column: key`.
    pub fn place_of(&self, target: &Target, key: &str) -> Option<String> {
        self.place_above(&target.at, key)
    }

    /// That the files which the target is made from are there.
    pub fn check_module(&self, target: &Target) -> Result<()> {
        let (keys, path) = match (&target.bin_path, &target.js_path, &target.module_path) {
            (Some(path), ..) => (["wasm_file", "bin_path"], path),
            (None, Some(path), _) => (["js_file", "js_path"], path),
            (None, None, Some(path)) => (["module_path"; 2], path),
            (None, None, None) => return Ok(()),
        };
        if path.exists() {
            return Ok(());
        }
        let place = keys.iter().find_map(|key| self.place_of(target, key));
        let message = format!("{} does not exist", path.display());
        Err(Error::coded("LC0607", message).said_at(place.as_deref()))
    }

    fn place_above(&self, at: &[Step], key: &str) -> Option<String> {
        // Above a child, `children` and its number are two steps.
        let mut holders = (0..=at.len()).rev().filter(|n| n % 2 == 0);
        holders.find_map(|n| {
            let path = [&at[..n], &[Step::Key(key.to_owned())]].concat();
            let place = self.place_in_files(&path)?;
            Some(format!("{place}: `{}`", place::text_of(&path)))
        })
    }

    /// The place in the last of the files that has it.
    fn place_in_files(&self, at: &[Step]) -> Option<String> {
        let mut layers = self.layers.iter().rev();
        layers.find_map(|layer| layer.place(at))
    }

    /// An error about what a path leads to, with its place.
    fn bad(&self, at: &[Step], message: impl std::fmt::Display) -> Error {
        let place = self.place_in_files(at);
        let place = place.unwrap_or_else(|| self.directory.join(FILE).display().to_string());
        coded!("LC0607", "{place}: {message}")
    }
}

fn collect_databases(
    own: &Settings<'_>,
    database: Option<&str>,
    server: Option<&str>,
    databases: &mut Vec<Database>,
) -> Result<()> {
    let (own_database, own_server) = (own.text("database")?, own.text("server")?);
    let database = own_database.as_deref().or(database);
    let server = own_server.as_deref().or(server);
    if let Some(database) = database {
        databases.push(Database {
            name: database.to_owned(),
            server: server.map(str::to_owned),
            server_place: own.project.place_above(&own.at, "server"),
            instead_of: None,
        });
    }
    for child in own.elements("children").unwrap_or_default() {
        collect_databases(&child, database, server, databases)?;
    }
    Ok(())
}

impl Settings<'_> {
    /// The objects of an array.
    fn elements(&self, key: &str) -> Result<Vec<Self>> {
        let elements = self.value(key, "an array of objects", Value::as_array)?;
        let elements = elements.into_iter().flatten().enumerate();
        let objects = elements.map(|(index, element)| {
            let mut at = self.at_key(key);
            at.push(Step::Index(index));
            match element {
                Value::Object(map) => Ok(Self {
                    project: self.project,
                    map: normalise(map.clone()),
                    at,
                }),
                _ => {
                    let message = format!("`{}` must be an object: {{ … }}", place::text_of(&at));
                    Err(self.project.bad(&at, message))
                }
            }
        });
        objects.collect()
    }

    fn check_dev(&self, value: &Value) -> Result<()> {
        let is_run = |(key, value): (&String, &Value)| key == "run" && value.is_string();
        let want = "an object with the member `run`, a string, and nothing else";
        match value.as_object().is_some_and(|dev| dev.iter().all(is_run)) {
            true => Ok(()),
            false => Err(self.wrong_type("dev", want)),
        }
    }

    fn dependencies(&self) -> Result<Vec<Dependency>> {
        let mut found: Vec<Dependency> = Vec::new();
        for entry in self.elements("dependencies")? {
            const KEYS: &str = "name database";
            if let Some(key) = entry.map.keys().find(|key| !has_word(KEYS, key)) {
                return Err(entry.unknown_key(key, "a `dependencies` entry", KEYS));
            }
            let (Some(name), Some(database)) = (entry.text("name")?, entry.text("database")?)
            else {
                let message = "a `dependencies` entry needs the keys `name` and `database`";
                return Err(self.project.bad(&entry.at, message));
            };
            // It becomes a directory.
            let is_letter = |c: char| c.is_ascii_lowercase() || c == '_';
            let is_word = name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
            if !is_word || !name.starts_with(is_letter) {
                return Err(entry.wrong_type("name", "a name of a Rust module"));
            }
            if found.iter().any(|other| other.name == name) {
                let message = format!("there are two dependencies with the name `{name}`");
                return Err(self.project.bad(&entry.at, message));
            }
            found.push(Dependency { name, database });
        }
        Ok(found)
    }

    fn generate_entries(&self) -> Result<Vec<GenerateEntry>> {
        let mut parsed = Vec::new();
        for entry in self.elements("generate")? {
            let unknown = |key: &&String| !has_word(GENERATE_KEYS, key);
            if let Some(key) = entry.map.keys().find(unknown) {
                return Err(entry.unknown_key(key, "a `generate` entry", GENERATE_KEYS));
            }
            let text = |key: &str| entry.text(key);
            let path = |key: &str| entry.path(key);
            parsed.push(GenerateEntry {
                language: text("language")?.ok_or_else(|| {
                    let message = "a `generate` entry needs the key `language`";
                    self.project.bad(&entry.at, message)
                })?,
                out_dir: path("out_dir")?,
                module_path: path("module_path")?,
                bin_path: path("bin_path")?.or(path("wasm_file")?),
                js_path: path("js_path")?.or(path("js_file")?),
                build_options: text("build_options")?,
                include_private: entry.flag("include_private")?.unwrap_or(false),
                client_package: text("client_package")?,
                namespace: text("namespace")?,
            });
        }
        Ok(parsed)
    }

    fn target(&self) -> Result<Target> {
        let text = |key: &str| self.text(key);
        let flag = |key: &str| self.flag(key);
        let path = |key: &str| self.path(key);
        let dotnet_version =
            self.value("dotnet_version", "\"8\" or \"10\", in quotes", |value| {
                value.as_str().filter(|text| matches!(*text, "8" | "10"))
            })?;
        let native_aot = flag("native_aot")?.unwrap_or(false);
        let csharp = crate::build::csharp_options(native_aot, dotnet_version);
        let num_replicas = self.value("num_replicas", "a number from 0 to 255", |value| {
            u8::try_from(value.as_u64()?).ok()
        })?;
        Ok(Target {
            at: self.at.clone(),
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
            env: self.variables()?,
            dependencies: self.dependencies()?,
            generate: Vec::new(),
        })
    }

    /// `env`: strings, booleans and numbers. An error shows no value.
    fn variables(&self) -> Result<BTreeMap<String, String>> {
        let members = self.value(
            "env",
            "an object of strings, numbers and booleans",
            Value::as_object,
        )?;
        let members = members.into_iter().flatten().map(|(key, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                _ => {
                    let message = format!("`env.{key}` must be a string, a number or a boolean");
                    return Err(self.project.bad(&self.at_key("env"), message));
                }
            };
            Ok((key.clone(), text))
        });
        members.collect()
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        self.value(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    fn path(&self, key: &str) -> Result<Option<PathBuf>> {
        Ok(self.text(key)?.map(|path| self.project.join(&path)))
    }

    fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.value(key, "true or false", Value::as_bool)
    }

    /// What `read` makes of a value, if there is one; it must make something of it.
    fn value<'v, T>(
        &'v self,
        key: &str,
        want: &str,
        read: impl FnOnce(&'v Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.map.get(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let read = read(value).ok_or_else(|| self.wrong_type(key, want))?;
        Ok(Some(read))
    }

    fn at_key(&self, key: &str) -> Vec<Step> {
        let last = Step::Key(key.to_owned());
        self.at.iter().cloned().chain([last]).collect()
    }

    fn wrong_type(&self, key: &str, want: &str) -> Error {
        let at = self.at_key(key);
        let found = match self.map.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::Array(_)) => ", not an array".to_owned(),
            Some(Value::Object(_)) => ", not an object".to_owned(),
            Some(value) => format!(", not {}", crate::http::shown(&value.to_string())),
        };
        let message = format!("`{}` must be {want}{found}", place::text_of(&at));
        self.project.bad(&at, message)
    }

    fn unknown_key(&self, key: &str, holder: &str, known: &str) -> Error {
        let known = known.replace('_', "-");
        let shown = key.replace('_', "-");
        let near = similar(&shown, known.split(' '));
        let hint = near.first().map(|near| format!("\nDid you mean `{near}`?"));
        let (known, hint) = (known.replace(' ', ", "), hint.unwrap_or_default());
        let message = format!(
            "Config key '{shown}' is not supported in {holder}. Available keys: {known}{hint}"
        );
        self.project.bad(&self.at_key(key), message)
    }
}

/// True if `name` matches a pattern with `*` and `?`.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let glob = globset::Glob::new(pattern);
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(name))
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
            (&"[".repeat(100_000), "brackets inside of each other"),
            (&format!("{{}}{}", " ".repeat(2 << 20)), "is larger than 1048576 bytes"),
            ("[]", "must hold an object"),
            ("{databse: 'x'}", "Config key 'databse' is not supported in the config file. Available keys: database, "),
            ("{'num-replicas': 300}", "`num-replicas` must be"),
            ("{'dotnet-version': 8}", "`dotnet-version` must be"),
            ("{dev: {run: 'x', more: 1}}", "`dev` must be"),
            ("{children: [1]}", "spacetime.json:1:13: `children[0]` must be an object"),
            ("{children: {}}", "`children` must be an array of objects, not an object"),
            ("{children: [{\n module_path: 1}]}", "spacetime.json:2:2: `children[0].module-path` must be a string, not 1"),
            ("{\n  generate: [{language: 'rust'}, {language: 'rust',\n    'out-dir': []}]}", "spacetime.json:3:5: `generate[1].out-dir` must be a string, not an array"),
            ("{generate: [{'out-dir': 'x'}]}", "spacetime.json:1:13: a `generate` entry needs the key `language`"),
            ("{generate: [{lang: 'x'}]}", "Did you mean `language`?"),
            ("{\n  databse: 'x'}", "spacetime.json:2:3: Config key 'databse'"),
            ("{\n  database: }", "spacetime.json:2:13 is not valid JSON5"),
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
            error.contains("spacetime.local.json:1:16: Config key 'sever'")
                && error.contains("mean `server`?"),
            "{error}"
        );
        // Who only wants to know which database is meant is not kept by it.
        let databases = project.databases().expect("names");
        let [only] = databases.as_slice() else {
            panic!("{databases:?}")
        };
        assert_eq!((&*only.name, only.server.as_deref()), ("a", Some("x")));
        let place = only.server_place.as_deref().expect("a place");
        assert!(place.ends_with("spacetime.json:1:17: `server`"), "{place}");
    }

    #[test]
    fn what_a_target_says_has_a_place() {
        let text = "{server: 'a',\n children: [{database: 'b',\n 'module-path': 'm', children: [{database: 'c'}]}]}";
        let files = [
            ("spacetime.json", text),
            ("spacetime.local.json", "{server: 'b'}"),
        ];
        let project = project(&files, None).expect("readable");
        let targets = project.targets().expect("valid");
        let place = |n: usize, key| {
            let place = project.place_of(&targets[n], key)?;
            Some(place.rsplit_once('/').expect("a path").1.to_owned())
        };
        for (n, key, want) in [
            (0, "server", Some("spacetime.local.json:1:2: `server`")),
            (2, "server", Some("spacetime.local.json:1:2: `server`")),
            (
                1,
                "module_path",
                Some("spacetime.json:3:2: `children[0].module-path`"),
            ),
            (
                2,
                "module_path",
                Some("spacetime.json:3:2: `children[0].module-path`"),
            ),
            (
                2,
                "database",
                Some("spacetime.json:3:34: `children[0].children[0].database`"),
            ),
            (0, "module_path", None),
        ] {
            assert_eq!(place(n, key).as_deref(), want, "{n} {key}");
        }
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
