//! Which bindings the command line and `spacetime.json` ask for.

use std::path::{Path, PathBuf};

use clap::{ArgAction, ValueEnum};

use super::job::{unsupported_language, BindingsFor, Job, Lang, Source};
use crate::build::csharp;
use crate::error::{Error, Result};
use crate::paths::absolute;
use crate::project::{GenerateEntry, Project, Target};
use crate::targets::matching;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// The databases of spacetime.json whose bindings to generate; a pattern with `*` and `?`
    #[arg(value_name = "DATABASE")]
    database: Option<String>,
    /// The language; found out from the project's files if it is left out
    #[arg(short, long, value_enum, value_name = "LANGUAGE")]
    lang: Option<Lang>,
    /// Where the files go
    #[arg(short, long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// The directory of the module
    #[arg(short = 'p', long, value_name = "DIR", conflicts_with_all = ["bin_path", "js_path", "module_def"])]
    module_path: Option<PathBuf>,
    /// Use this WebAssembly file without building anything
    #[arg(short = 'b', long, value_name = "FILE", conflicts_with_all = ["js_path", "module_def"])]
    bin_path: Option<PathBuf>,
    /// Use this JavaScript file without building anything
    #[arg(short = 'j', long, value_name = "FILE", conflicts_with = "module_def")]
    js_path: Option<PathBuf>,
    /// Use the definition in this JSON file, or on stdin, instead of a module
    #[arg(long, hide = true, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    module_def: Option<PathBuf>,
    /// TypeScript: the npm package to import from; what package.json depends on if it is left out
    #[arg(long, value_name = "PACKAGE", value_parser = ["spacetimedb", "lightcone"])]
    client_package: Option<String>,
    /// Rust and TypeScript only: who uses the bindings
    #[arg(
        long,
        value_enum,
        value_name = "FOR",
        default_value_t,
        hide_default_value = true
    )]
    bindings: BindingsFor,
    /// Private tables and functions too
    #[arg(long)]
    include_private: bool,
    /// C# only: the namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Unreal only: the directory of the .uproject file
    #[arg(long, value_name = "DIR")]
    uproject_dir: Option<PathBuf>,
    /// Unreal only: the module to write to
    #[arg(long, alias = "module-name", value_name = "NAME")]
    unreal_module_name: Option<String>,
    /// Unreal only: a prefix for types
    #[arg(long, value_name = "PREFIX")]
    module_prefix: Option<String>,
    /// Options for the build, as one text
    #[arg(
        long,
        alias = "build-opts",
        value_name = "OPTIONS",
        allow_hyphen_values = true
    )]
    build_options: Option<String>,
    /// C# only: the version of .NET
    #[arg(long, value_name = "8|10", value_parser = ["8", "10"])]
    dotnet_version: Option<String>,
    /// Delete files that are generated no more without asking
    #[arg(short, long, action = ArgAction::SetTrue)]
    yes: bool,
    /// Do not look at spacetime.json
    #[arg(long)]
    pub(super) no_config: bool,
    /// The environment layer of spacetime.json
    #[arg(long, value_name = "ENV")]
    pub(super) env: Option<String>,
}

/// What the command line and the project ask for.
pub fn jobs(args: &Args, project: Option<&Project>) -> Result<Vec<Job>> {
    check_languages_options(args)?;
    let Some(project) = project else {
        return Ok(vec![job(args, Path::new("."), None, None)?]);
    };
    let targets = targets(args, project)?;
    let mut entries: Vec<(&Target, &GenerateEntry)> = Vec::new();
    for target in &targets {
        for entry in &target.generate {
            let is_it = |(t, e): &(&Target, &GenerateEntry)| {
                *e == entry && t.module_path == target.module_path
            };
            if !entries.iter().any(is_it) {
                entries.push((target, entry));
            }
        }
    }
    let has_dependencies = || targets.iter().any(|target| !target.dependencies.is_empty());
    if entries.is_empty() {
        if args.lang.is_none()
            && detect_language(&project.directory).is_none()
            && has_dependencies()
        {
            return Ok(Vec::new());
        }
        let of = targets.first().map(|target| (project, target));
        return Ok(vec![job(args, &project.directory, of, None)?]);
    }
    if entries.len() > 1 {
        let given = [
            ("--lang", args.lang.is_some()),
            ("--out-dir", args.out_dir.is_some()),
            ("--module-path", args.module_path.is_some()),
            ("--bin-path", args.bin_path.is_some()),
            ("--js-path", args.js_path.is_some()),
            ("--module-def", args.module_def.is_some()),
            ("--build-options", args.build_options.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            bail!("LC0608", "{option} cannot be used for several `generate` entries at once. Pass --no-config to use it alone.");
        }
    }
    let here = &project.directory;
    let jobs = entries.into_iter();
    jobs.map(|(target, entry)| job(args, here, Some((project, target)), Some(entry)))
        .collect()
}

fn targets(args: &Args, project: &Project) -> Result<Vec<Target>> {
    let targets = project.targets()?;
    match &args.database {
        Some(pattern) => matching(pattern, &targets),
        None => Ok(targets),
    }
}

/// The targets whose modules get bindings of other databases: none if the command line names a module.
pub fn with_dependencies(args: &Args, project: Option<&Project>) -> Result<Vec<Target>> {
    let Some(project) = project.filter(|_| args.source().is_none()) else {
        return Ok(Vec::new());
    };
    let mut targets = targets(args, project)?;
    // A module that is built already has used its bindings.
    targets.retain(|target| target.bin_path.is_none() && target.js_path.is_none());
    targets.retain(|target| !target.dependencies.is_empty());
    Ok(targets)
}

/// The same jobs for `spacetime dev`, which has built the target's module itself.
pub fn jobs_of_target(project: &Project, target: &Target) -> Result<Vec<Job>> {
    let args = Args {
        yes: true,
        ..Args::default()
    };
    let (here, of) = (&project.directory, Some((project, target)));
    let entries = target.generate.iter();
    entries
        .map(|entry| job(&args, here, of, Some(entry)))
        .collect()
}

impl Args {
    /// The module that the command line names, if it names one.
    fn source(&self) -> Option<Source> {
        let definition = self.module_def.clone().map(Source::Definition);
        let module = [&self.bin_path, &self.js_path, &self.module_path];
        definition.or_else(|| named_source(module, &self.build_options))
    }
}

/// The command line over an entry of the project over what is found in `directory`.
fn job(
    args: &Args,
    directory: &Path,
    of: Option<(&Project, &Target)>,
    entry: Option<&GenerateEntry>,
) -> Result<Job> {
    let lang = match (args.lang, entry) {
        (Some(lang), _) => lang,
        (None, Some(entry)) => Lang::from_str(&entry.language, true).map_err(|_| {
            let place = of.and_then(|(project, target)| project.place_of(target, "generate"));
            let language = &entry.language;
            coded!("LC0607", "`language` of an entry must be typescript, rust, csharp or unrealcpp, not `{language}`")
                .said_at(place.as_deref())
        })?,
        (None, None) => detect_language(directory).ok_or_else(|| {
            coded!(
                "LC0634",
                "Could not detect the language to generate: {} has neither package.json, Cargo.toml nor *.csproj. Say it with \
                 --lang.",
                absolute(directory).display(),
            )
        })?,
    };
    let nothing = GenerateEntry::default();
    let entry = entry.unwrap_or(&nothing);
    let build_options = args.build_options.clone().or(entry.build_options.clone());
    let own = [&entry.bin_path, &entry.js_path, &entry.module_path];
    let named = args.source().or_else(|| named_source(own, &build_options));
    if let (None, Some((project, target))) = (&named, of) {
        project.check_module(target)?;
    }
    let of_target = |(_, target): (_, &Target)| {
        let module = [&target.bin_path, &target.js_path, &target.module_path];
        named_source(module, &build_options)
    };
    let source = named.or_else(|| of.and_then(of_target));
    let out_dir = args.out_dir.clone().or(entry.out_dir.clone());
    Ok(Job {
        lang,
        bindings: args.bindings,
        source: source.map_or_else(|| default_source(directory, build_options), Ok)?,
        out_dir: match (out_dir, lang) {
            (Some(directory), _) => directory,
            (None, Lang::Typescript | Lang::Rust) => directory.join("src/module_bindings"),
            (None, Lang::Csharp) => directory.join("module_bindings"),
            (None, Lang::Unrealcpp) => return Err(unsupported_language()),
        },
        include_private: args.include_private || entry.include_private,
        client_package: args.client_package.clone().or(entry.client_package.clone()),
        namespace: args.namespace.clone().or(entry.namespace.clone()),
        yes: args.yes,
    })
}

/// A module by its WebAssembly file, its JavaScript file or its directory, the first that is named.
fn named_source(
    [wasm, js, directory]: [&Option<PathBuf>; 3],
    build_options: &Option<String>,
) -> Option<Source> {
    let project = |directory| Source::Project {
        directory,
        build_options: build_options.clone(),
    };
    let file = wasm.clone().map(Source::Wasm);
    let file = file.or(js.clone().map(Source::Js));
    file.or_else(|| directory.clone().map(project))
}

fn default_source(directory: &Path, build_options: Option<String>) -> Result<Source> {
    let directory = directory.join("spacetimedb");
    if !directory.is_dir() {
        bail!("LC0610", "{} does not exist. Say where the module is with --module-path, --bin-path or --js-path.", directory.display());
    }
    Ok(Source::Project {
        directory,
        build_options,
    })
}

/// The language of the client in a directory.
pub fn detect_language(directory: &Path) -> Option<Lang> {
    let has = |name: &str| directory.join(name).is_file();
    if has("package.json") {
        Some(Lang::Typescript)
    } else if has("Cargo.toml") {
        Some(Lang::Rust)
    } else {
        csharp::projects(directory).next().map(|_| Lang::Csharp)
    }
}

fn check_languages_options(args: &Args) -> Result<()> {
    use Lang::{Csharp, Rust, Typescript, Unrealcpp};
    let for_module = args.bindings == BindingsFor::Module;
    let module_name = args.unreal_module_name.is_some();
    let package = args.client_package.is_some();
    let mut given = [
        (args.namespace.is_some(), "--namespace", Csharp),
        (args.uproject_dir.is_some(), "--uproject-dir", Unrealcpp),
        (module_name, "--unreal-module-name", Unrealcpp),
        (args.module_prefix.is_some(), "--module-prefix", Unrealcpp),
        (package, "--client-package", Typescript),
    ]
    .into_iter();
    if for_module
        && args
            .lang
            .is_some_and(|lang| !matches!(lang, Rust | Typescript))
    {
        return Err(Error::Usage(
            "--bindings module is for rust and typescript only".to_owned(),
        ));
    }
    let is_other = |wanted: Lang| args.lang.is_some_and(|lang| lang != wanted);
    let Some((_, option, wanted)) = given.find(|(given, _, of)| *given && is_other(*of)) else {
        return Ok(());
    };
    let language = wanted.to_possible_value().expect("no language is hidden");
    let text = format!("{option} is for {} only", language.get_name());
    Err(Error::Usage(text))
}

#[cfg(test)]
mod tests {
    use super::super::client_package;
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    fn parse(args: &[&str]) -> Args {
        Wrapper::try_parse_from(["generate"].iter().chain(args))
            .expect("valid")
            .args
    }

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        directory
    }

    #[test]
    fn the_package_is_the_one_that_the_project_depends_on() {
        for (manifest, want) in [
            (
                r#"{"dependencies":{"spacetimedb":"2.10.*"}}"#,
                "spacetimedb",
            ),
            (r#"{"dependencies":{"lightcone":"0.1.0"}}"#, "lightcone"),
            (
                r#"{"dependencies":{"lightcone":"1","spacetimedb":"npm:lightcone@1"}}"#,
                "spacetimedb",
            ),
            ("not JSON", "spacetimedb"),
        ] {
            let directory = directory(&[("package.json", manifest)]);
            assert_eq!(
                client_package(&directory.path().join("src/module_bindings")),
                want,
                "{manifest}"
            );
        }
    }

    #[test]
    fn entries_of_the_project_are_jobs_and_the_same_one_only_once() {
        let directory = directory(&[
            (
                "spacetime.json",
                r#"{"database":"a","module-path":"./m","generate":[{"language":"ts","out-dir":"web/b"},{"language":"rust","include-private":true}],
                   "children":[{"database":"b","generate":[{"language":"ts","out-dir":"web/b"}]}]}"#,
            ),
            ("m/package.json", "{}"),
        ]);
        let project = Project::find(directory.path(), None)
            .expect("valid")
            .expect("there");
        let jobs = jobs(&parse(&[]), Some(&project)).expect("two");
        let seen: Vec<_> = jobs
            .iter()
            .map(|j| (j.lang, j.out_dir.clone(), j.include_private))
            .collect();
        assert_eq!(
            seen,
            [
                (Lang::Typescript, project.directory.join("web/b"), false),
                (
                    Lang::Rust,
                    project.directory.join("src/module_bindings"),
                    true
                )
            ]
        );
        let error =
            super::jobs(&parse(&["--out-dir", "x"]), Some(&project)).expect_err("two entries");
        assert!(
            error.to_string().contains("--out-dir cannot be used"),
            "{error}"
        );
        let error = super::jobs(&parse(&["nothing*"]), Some(&project)).expect_err("no target");
        assert!(
            error
                .to_string()
                .starts_with("No database target matches 'nothing*'"),
            "{error}"
        );
    }

    #[test]
    fn without_a_project_the_language_is_found_out() {
        let here = directory(&[("Cargo.toml", ""), ("spacetimedb/Cargo.toml", "")]);
        let found = job(&parse(&[]), here.path(), None, None).expect("a job");
        assert_eq!(
            (found.lang, found.out_dir),
            (Lang::Rust, here.path().join("src/module_bindings"))
        );
        let empty = directory(&[]);
        for (args, part) in [
            (vec![], "[LC0634]"),
            (vec!["--lang", "ts"], "[LC0610]"),
            (vec!["--lang", "unreal", "-b", "x"], "[LC0601]"),
        ] {
            let error = job(&parse(&args), empty.path(), None, None)
                .expect_err("no job")
                .to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
