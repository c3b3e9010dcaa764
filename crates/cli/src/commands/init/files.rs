//! What `spacetime init` writes: a template, and beside it names and versions, configuration, rules for assistants.

use std::path::Path;
use std::process::Command;

use include_dir::Dir;
use serde_json::{json, Value};

use super::plan::{kebab, Plan, Source};
use crate::build::csharp;
use crate::error::{FileResult as _, Result};

/// What assistants that write code should know of such a project.
const RULES: &str = include_str!("rules.md");

/// What is built, installed, or of one person only.
const IGNORED: &str = "node_modules/\ndist/\ntarget/\nspacetime.local.json\n.env.local\n";

pub fn write(plan: &Plan) -> Result<()> {
    match &plan.source {
        Source::Template(template) => {
            for directory in template.directories() {
                write_directory(directory, directory.path(), plan)?;
            }
            if !plan.server_only {
                let readme = plan.directory.join("README.md");
                write_new(&readme, &template.readme(&plan.name))?;
            }
        }
        Source::Git(url) => clone(url, plan)?,
    }
    let (root, name) = (&plan.directory, kebab(&plan.name));
    for (directory, name) in [
        (root.clone(), Some(&*name)),
        (root.join("spacetimedb"), None),
    ] {
        npm_package(&directory.join("package.json"), name, plan)?;
        cargo_package(&directory.join("Cargo.toml"), name)?;
        csharp_projects(&directory)?;
    }

    let mut project = json!({ "server": plan.server, "module-path": "./spacetimedb" });
    if plan.native_aot {
        project["native-aot"] = true.into();
    }
    let local = json!({ "database": plan.database });
    write_new(&root.join("spacetime.json"), &pretty(&project))?;
    write_new(&root.join("spacetime.local.json"), &pretty(&local))?;
    write_new(&root.join(".gitignore"), IGNORED)?;
    if root.join("package.json").is_file() {
        let host = plan.server_url.replacen("http", "ws", 1);
        let host = host.replace("//127.0.0.1", "//localhost");
        let variables = environment(&plan.database, &host);
        write_new(&root.join(".env.local"), &variables)?;
    }
    const FOR_ASSISTANTS: &str =
        "AGENTS.md CLAUDE.md .windsurfrules .github/copilot-instructions.md";
    for name in FOR_ASSISTANTS.split(' ') {
        write_new(&root.join(name), RULES)?;
    }
    let cursor = format!(
        "---\ndescription: Rules for this project\nglobs: **/*\nalwaysApply: true\n---\n\n{RULES}"
    );
    write_new(&root.join(".cursor/rules/spacetimedb.mdc"), &cursor)
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
        // Another part of the template had it before.
        if path.exists() {
            continue;
        }
        let contents = match file.contents_utf8() {
            Some(text) => text.replace("{{database}}", &plan.database).into_bytes(),
            None => file.contents().to_vec(),
        };
        write_below(&path, &contents)?;
    }
    for below in directory.dirs() {
        write_directory(below, root, plan)?;
    }
    Ok(())
}

fn clone(url: &str, plan: &Plan) -> Result<()> {
    let status = Command::new("git")
        .args(["clone", "--depth", "1", "--", url])
        .arg(&plan.directory)
        .stdout(crate::output::of_children())
        .status()
        .map_err(caused!(
            "LC0637",
            "cannot run git, which templates from repositories need"
        ))?;
    if !status.success() {
        bail!("LC0637", "git could not clone {url}; its message is above");
    }
    let history = plan.directory.join(".git");
    std::fs::remove_dir_all(&history).or_cannot("delete", &history)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The frameworks' prefixes of variables that reach a page.
const PREFIXES: [&str; 6] = [
    "",
    "VITE_",
    "NEXT_PUBLIC_",
    "REACT_APP_",
    "EXPO_PUBLIC_",
    "PUBLIC_",
];

/// The twelve variables of `.env.local` (07 §9).
pub fn environment(database: &str, host: &str) -> String {
    let variables = PREFIXES.map(|prefix| {
        format!("{prefix}SPACETIMEDB_DB_NAME={database}\n{prefix}SPACETIMEDB_HOST={host}\n")
    });
    variables.concat()
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    write_below(path, text.as_bytes())
}

fn write_below(path: &Path, contents: &[u8]) -> Result<()> {
    let write = || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, contents)
    };
    write().or_cannot("write", path)
}

/// Releases of the crate `spacetimedb` for a new module. Cargo takes the newest that the compiler can build: 2.10.1 needs Rust 1.93,
/// 2.14 needs 1.97, and both are tested here.
const RUST_MODULE_RANGE: &str = ">=2.10.1, <2.15";
/// Of the packages that end at 2.10, or that are tested here at that release only (docs/compat.md).
const OTHER_RANGE: &str = "2.10.*";

/// The npm package `lightcone` as `make install` and the Debian package put it beside the `bin` of this program, and the tarball beside
/// the program itself, until npm's registry has it.
fn installed_sdk() -> Option<String> {
    let program = crate::paths::this_program().ok()?;
    let places = program.ancestors().skip(1).take(2);
    let mut files = places.map(|place| place.join("lib/lightcone/lightcone.tgz"));
    let file = files.find(|file| file.is_file())?;
    Some(format!("file:{}", file.display()))
}

fn npm_package(path: &Path, name: Option<&str>, plan: &Plan) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(());
    };
    let mut package: Value =
        serde_json::from_str(&text).map_err(caused!("LC0637", "{} is not JSON", path.display()))?;
    if let Some(name) = name {
        package["name"] = name.into();
    }
    let versions = [
        ("spacetimedb", Some(OTHER_RANGE.to_owned())),
        ("lightcone", installed_sdk()),
    ];
    for (sdk, version) in versions {
        let dependency = package.pointer_mut(&format!("/dependencies/{sdk}"));
        let version = plan.npm_sdk.clone().or(version);
        if let (Some(dependency), Some(version)) = (dependency, version) {
            *dependency = version.into();
        }
    }
    std::fs::write(path, pretty(&package)).or_cannot("write", path)
}

fn csharp_projects(directory: &Path) -> Result<()> {
    for path in csharp::projects(directory) {
        let mut text = std::fs::read_to_string(&path).or_cannot("read", &path)?;
        for package in ["SpacetimeDB.Runtime", "SpacetimeDB.ClientSDK"] {
            text = with_version(&text, package, OTHER_RANGE);
        }
        std::fs::write(&path, text).or_cannot("write", &path)?;
    }
    Ok(())
}

/// The text of a C# project with another version of a package that it refers to.
fn with_version(text: &str, package: &str, version: &str) -> String {
    let reference = format!("Include=\"{package}\"");
    let Some((before, rest)) = text.split_once(&reference) else {
        return text.to_owned();
    };
    // In the same element.
    let end = rest.find('>').unwrap_or(rest.len());
    let attribute = "Version=\"";
    let Some(start) = rest[..end].find(attribute) else {
        return text.to_owned();
    };
    let (head, tail) = rest.split_at(start + attribute.len());
    match tail.split_once('"') {
        Some((_, tail)) => format!("{before}{reference}{head}{version}\"{tail}"),
        None => text.to_owned(),
    }
}

fn cargo_package(path: &Path, name: Option<&str>) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(());
    };
    let manifest = text.parse::<toml_edit::DocumentMut>();
    let mut manifest = manifest.map_err(caused!("LC0637", "{} is not TOML", path.display()))?;
    if let Some(name) = name {
        manifest["package"]["name"] = toml_edit::value(name);
    }
    for (dependency, range) in [
        ("spacetimedb", RUST_MODULE_RANGE),
        ("spacetimedb-sdk", OTHER_RANGE),
    ] {
        let known = manifest.get_mut("dependencies");
        let known = known.and_then(|known| known.get_mut(dependency));
        if let Some(version) = known.filter(|item| item.is_str()) {
            *version = toml_edit::value(range);
        }
    }
    std::fs::write(path, manifest.to_string()).or_cannot("write", path)
}

#[cfg(test)]
mod tests {
    use super::with_version;

    #[test]
    fn packages_of_csharp_get_a_version() {
        let with = |text| with_version(text, "A.B", "2.10.*");
        for (text, want) in [
            (
                r#"<R Include="A.B" Version="1.0" /><R Include="C" Version="3" />"#,
                r#"<R Include="A.B" Version="2.10.*" /><R Include="C" Version="3" />"#,
            ),
            (
                r#"<R Include="A.B" /><R Include="C" Version="3" />"#,
                r#"<R Include="A.B" /><R Include="C" Version="3" />"#,
            ),
            (
                r#"<R Include="A.B.C" Version="3" />"#,
                r#"<R Include="A.B.C" Version="3" />"#,
            ),
            (r#"Include="A.B" Version=""#, r#"Include="A.B" Version=""#),
        ] {
            assert_eq!(with(text), want);
        }
    }
}
