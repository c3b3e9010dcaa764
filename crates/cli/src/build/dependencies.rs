//! Crates that no module can have: they ask for what is there in browsers and operating systems only. Which they are is seen in what the
//! compiler or the linker says, or in the file that was built; who asked for them, and what to write instead, is said here.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::rust_toolchain::{program, TARGET};

/// Chains that are shown; each is for one entry of Cargo.toml.
const CHAINS_MAX: usize = 5;

/// What a module cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Random numbers of the operating system, for this crate.
    Random(&'static str),
    /// JavaScript of a browser.
    Browser,
}

/// What one package did not compile for, or could not be linked for.
#[derive(Debug, Default, PartialEq)]
pub struct Failure {
    pub package: String,
    pub text: String,
}

impl Absent {
    /// What failed because of it, if it did.
    pub fn of_failures(failures: &[Failure]) -> Option<Self> {
        failures.iter().find_map(|failure| {
            let text = &failure.text;
            let is_unlinked = |symbol: &str| text.contains(&format!("undefined symbol: {symbol}"));
            match &*failure.package {
                "getrandom" => Some(Self::Random("getrandom")),
                "uuid" if text.contains("source of randomness") => Some(Self::Random("uuid")),
                "wasm-bindgen" | "js-sys" | "web-sys" => Some(Self::Browser),
                _ if is_unlinked("__getrandom_") => Some(Self::Random("getrandom")),
                _ if is_unlinked("__wbindgen") => Some(Self::Browser),
                _ => None,
            }
        })
    }

    /// The same of what a built file imports and exports.
    pub fn of_names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Option<Self> {
        if names.clone().any(|name| name.starts_with("__wbindgen")) {
            return Some(Self::Browser);
        }
        // `__getrandom_custom`, and with the crate's version in it, `__getrandom_v03_custom`.
        let is_getrandom =
            |name: &str| name.starts_with("__getrandom_") && name.ends_with("custom");
        let mut names = names;
        names.any(is_getrandom).then_some(Self::Random("getrandom"))
    }

    fn package(self) -> &'static str {
        match self {
            Self::Random(package) => package,
            Self::Browser => "wasm-bindgen",
        }
    }

    /// What is wrong, who asks for it, and what to write into Cargo.toml.
    pub fn explain(self, module: &Path, features: Option<&str>) -> String {
        let what = match self {
            Self::Random(package) => format!(
                "the module uses {package} for random numbers of an operating system, and there is none where modules run. Take them \
                 from `ctx.rng()` instead"
            ),
            Self::Browser => "the module uses wasm-bindgen, which works in browsers only. A crate's feature for browsers is to be \
                              turned off"
                .to_owned(),
        };
        let package = self.package();
        let chains = metadata(module, features).map(|found| chains(&found, package));
        let chains = chains.unwrap_or_default();
        if chains.is_empty() {
            return format!(
                "{what}. `cargo tree --target {TARGET} -i {package}` says who asks for it"
            );
        }
        let mut text = format!("{what}.\nIt is asked for by:\n");
        for chain in chains.iter().take(CHAINS_MAX) {
            let names = chain.iter().map(Package::text);
            text.push_str(&format!("    {}\n", names.collect::<Vec<_>>().join(" > ")));
        }
        text.push_str("Write into Cargo.toml, with the features that you use:\n");
        for chain in chains.iter().take(CHAINS_MAX) {
            text.push_str(&format!("    {}\n", entry(&chain[0])));
        }
        text.trim_end().to_owned()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
}

impl Package {
    fn text(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// As much of the version as an entry has.
    fn requirement(&self) -> &str {
        let dots = match self.version.starts_with("0.") {
            true => 2,
            false => 1,
        };
        let end = self.version.match_indices('.').nth(dots - 1);
        end.map_or(&*self.version, |(at, _)| &self.version[..at])
    }
}

/// The entry for a direct dependency without what modules cannot have.
fn entry(package: &Package) -> String {
    let (name, version) = (&package.name, package.requirement());
    let plain = format!("{name} = {{ version = \"{version}\", default-features = false");
    match &**name {
        "getrandom" => "# remove getrandom; `ctx.rng()` has random numbers".to_owned(),
        "wasm-bindgen" | "js-sys" | "web-sys" => format!("# remove {name}; there is no browser"),
        "rand" => format!("{plain}, features = [\"small_rng\"] }}   # seeded with `ctx.rng()`"),
        "uuid" => format!("{plain} }}   # and `ctx.new_uuid_v4()` for new ones"),
        "chrono" => {
            format!("{plain}, features = [\"alloc\"] }}   # and `ctx.timestamp` for the time")
        }
        _ => format!("{plain} }}   # none of js, wasm_js, wasmbind, getrandom"),
    }
}

/// What cargo knows of the module's dependencies; nothing is fetched.
fn metadata(module: &Path, features: Option<&str>) -> Option<Value> {
    let mut command = Command::new(program("CARGO", "cargo"));
    command
        .current_dir(module)
        .args(["metadata", "--offline", "--format-version", "1"])
        .args(["--filter-platform", TARGET])
        .stdin(Stdio::null());
    if let Some(features) = features {
        command.arg(format!("--features={features}"));
    }
    let output = command.output().ok().filter(|o| o.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

/// What to do about crates that ask for a newer compiler than there is, if there are any. Cargo refuses them before it compiles.
pub fn newer_than_compiler(module: &Path, features: Option<&str>) -> Option<String> {
    let mut command = Command::new(program("RUSTC", "rustc"));
    let output = command
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let compiler = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    newer_than(&compiler, &metadata(module, features)?)
}

fn newer_than(compiler: &str, metadata: &Value) -> Option<String> {
    let has = rust_version(compiler.split_whitespace().nth(1)?)?;
    let packages = metadata["packages"].as_array()?.iter();
    let mut newer: Vec<_> = packages
        .filter_map(|package| {
            let wants = package["rust_version"].as_str()?;
            let shown = format!(
                "{} {}",
                package["name"].as_str()?,
                package["version"].as_str()?
            );
            (rust_version(wants)? > has).then_some((rust_version(wants)?, shown))
        })
        .collect();
    newer.sort();
    let ((major, minor), package) = newer.last()?;
    Some(format!(
        "{package} asks for Rust {major}.{minor}, and this is {compiler}. Update the compiler (`rustup update`), use an older release of \
         the crate (`cargo update -p NAME --precise VERSION`; spacetimedb 2.10.1 builds from Rust 1.93 on), or try it as it is: \
         `spacetime build --ignore-rust-version`, `spacetime publish --build-options=--ignore-rust-version`"
    ))
}

/// The first two numbers of a version of Rust.
fn rust_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(['.', '-']);
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// For each direct dependency that leads to a package of this name, the shortest way to it.
fn chains(metadata: &Value, name: &str) -> Vec<Vec<Package>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: HashMap<String, Package> = list(&metadata["packages"])
        .iter()
        .map(|package| {
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            (text(&package["id"]), Package { name, version })
        })
        .collect();
    let needs: HashMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let needed = list(&node["deps"]).into_iter().filter(is_in_the_module);
            let needed = needed.map(|needed| text(&needed["pkg"]));
            (text(&node["id"]), needed.collect())
        })
        .collect();
    let root = text(&metadata["resolve"]["root"]);
    // It brings a source of random numbers for this version.
    let brings_source = packages.values().any(|p| p.name == "spacetimedb");
    let has_source =
        |p: &Package| brings_source && p.name == "getrandom" && p.version.starts_with("0.2.");
    let is_wanted = |id: &str| {
        packages
            .get(id)
            .is_some_and(|p| p.name == name && !has_source(p))
    };
    let direct = needs.get(&root).into_iter().flatten();
    let chains = direct.filter_map(|id| {
        let chain = shortest(id, &needs, is_wanted)?;
        chain.iter().map(|id| packages.get(id).cloned()).collect()
    });
    chains.collect()
}

/// Build scripts and tests run elsewhere.
fn is_in_the_module(dependency: &Value) -> bool {
    let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
    kinds.any(|kind| kind["kind"].is_null())
}

fn shortest(
    from: &str,
    needs: &HashMap<String, Vec<String>>,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let mut came_from: HashMap<&str, Option<&str>> = HashMap::from([(from, None)]);
    let mut queue = VecDeque::from([from]);
    while let Some(id) = queue.pop_front() {
        if is_wanted(id) {
            let chain = std::iter::successors(Some(id), |id| came_from.get(*id).copied().flatten());
            let mut chain: Vec<String> = chain.map(str::to_owned).collect();
            chain.reverse();
            return Some(chain);
        }
        for next in needs.get(id).into_iter().flatten() {
            if !came_from.contains_key(&**next) {
                came_from.insert(next, Some(id));
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_say_what_is_absent() {
        let of = |package: &str, text: &str| {
            let failure = Failure {
                package: package.to_owned(),
                text: text.to_owned(),
            };
            Absent::of_failures(&[Failure::default(), failure])
        };
        let random = Some(Absent::Random("getrandom"));
        for (package, text, want) in [
            ("getrandom", "the wasm targets are not supported", random),
            (
                "m",
                "wasm-ld: error: m.o: undefined symbol: __getrandom_v03_custom",
                random,
            ),
            (
                "m",
                "rust-lld: error: m.o: undefined symbol: __getrandom_custom",
                random,
            ),
            (
                "m",
                "undefined symbol: __wbindgen_throw",
                Some(Absent::Browser),
            ),
            (
                "uuid",
                "specify a source of randomness using",
                Some(Absent::Random("uuid")),
            ),
            ("uuid", "expected `;`", None),
            ("m", "undefined symbol: malloc", None),
        ] {
            assert_eq!(of(package, text), want, "{package} {text}");
        }
    }

    #[test]
    fn chains_lead_from_cargo_toml() {
        let package = |id: &str, version: &str| json!({"id": id, "name": id, "version": version});
        let need = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let node = |id: &str, deps: Value| json!({"id": id, "deps": deps});
        let normal = |id: &str| need(id, Value::Null);
        let metadata = json!({
            "packages": [
                package("m", "0.1.0"), package("spacetimedb", "2.10.1"), package("rand", "0.9.5"), package("rand_core", "0.9.3"),
                package("getrandom", "0.3.4"), package("cc", "1.2.3"), package("uuid", "1.29.1"),
                json!({"id": "old", "name": "getrandom", "version": "0.2.17"}),
            ],
            "resolve": {"root": "m", "nodes": [
                node("m", json!([normal("spacetimedb"), normal("rand"), need("cc", "build".into()), normal("uuid")])),
                node("spacetimedb", json!([normal("old")])),
                node("rand", json!([normal("rand_core"), normal("old")])),
                node("rand_core", json!([normal("rand"), normal("getrandom")])),
                node("cc", json!([normal("getrandom")])),
                node("uuid", json!([])),
            ]},
        });
        let texts = |name| -> Vec<String> {
            let chains = chains(&metadata, name);
            let text = |chain: &Vec<Package>| {
                let names: Vec<_> = chain.iter().map(Package::text).collect();
                names.join(" > ")
            };
            chains.iter().map(text).collect()
        };
        assert_eq!(
            texts("getrandom"),
            ["rand 0.9.5 > rand_core 0.9.3 > getrandom 0.3.4"]
        );
        assert_eq!(texts("uuid"), ["uuid 1.29.1"]);
        assert_eq!(texts("x"), Vec::<String>::new());
        assert!(chains(&Value::Null, "x").is_empty());
    }

    #[test]
    fn entries_have_as_much_of_the_version_as_is_usual() {
        for (name, version, want) in [
            (
                "rand",
                "0.9.5",
                "rand = { version = \"0.9\", default-features = false, features = [\"small_rng\"] }   # seeded with `ctx.rng()`",
            ),
            (
                "x",
                "1.29.1",
                "x = { version = \"1\", default-features = false }   # none of js, wasm_js, wasmbind, getrandom",
            ),
            ("getrandom", "0.3.4", "# remove getrandom; `ctx.rng()` has random numbers"),
        ] {
            let package = Package {
                name: name.into(),
                version: version.into(),
            };
            assert_eq!(entry(&package), want);
        }
    }

    #[test]
    fn crates_that_ask_for_a_newer_compiler_are_named() {
        let package = |name: &str, version: &str, wants: Value| json!({"name": name, "version": version, "rust_version": wants});
        let found = json!({"packages": [
            package("spacetimedb", "2.14.0", json!("1.97.0")), package("log", "0.4.27", json!("1.60")),
            package("odd", "1.0.0", Value::Null), package("spacetimedb-sats", "2.14.0", json!("1.96")),
        ]});
        let text = newer_than("rustc 1.95.0 (59807616e 2026-04-14)", &found).expect("two are");
        let starts = "spacetimedb 2.14.0 asks for Rust 1.97, and this is rustc 1.95.0 (";
        assert!(text.starts_with(starts), "{text}");
        for compiler in ["rustc 1.97.0-nightly (a)", "rustc 2.0.1", "odd", ""] {
            assert_eq!(newer_than(compiler, &found), None, "{compiler}");
        }
    }
}
