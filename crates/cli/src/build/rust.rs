//! Rust modules, built by cargo (07 §7).

use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::dependencies::{newer_than_compiler, Absent, Failure};
use super::options::{Built, HostType, Options};
use super::rust_toolchain::{ensure_target, program, TARGET};
use super::wasm;
use crate::error::{Error, FileResult as _, Result};
use crate::output::{self, remark, remark_text};
use crate::paths::files_below;
use crate::progress::Progress;

/// Errors that are looked at after they were printed.
const FAILURES_MAX: usize = 64;
/// Output that no module can make: there is no terminal where it runs.
const PRINTS: [&str; 5] = ["eprintln!", "println!", "eprint!", "print!", "dbg!"];

pub fn build(directory: &Path, options: &Options) -> Result<Built> {
    ensure_target()?;
    lint(directory, &options.lint_dir)?;
    let built = cargo_build(directory, options)?;
    check(directory, &built, options)?;
    let path = match options.debug {
        true => built,
        false => optimise(built),
    };
    Ok(Built::new(path, HostType::Wasm))
}

/// Refuses sources that print: the output would go nowhere.
fn lint(directory: &Path, lint_dir: &str) -> Result<()> {
    if lint_dir.is_empty() {
        remark!("warning: the sources are not checked for prints, because --lint-dir is empty");
        return Ok(());
    }
    let mut hits = Vec::new();
    // A module without that directory has nothing to check there.
    let files = files_below(&directory.join(lint_dir))?.into_iter();
    for path in files.filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let text = std::fs::read(&path).or_cannot("read", &path)?;
        for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            if PRINTS.iter().any(|print| line.contains(print)) {
                let (file, number, line) = (path.display(), number + 1, line.trim());
                hits.push(format!("  {file}:{number}: {line}"));
            }
        }
    }
    if hits.is_empty() {
        return Ok(());
    }
    let hits = hits.join("\n");
    bail!("LC0612", "A module has no terminal to print on. Use `log::info!` and its relatives, and read them with `spacetime logs`:\n{hits}");
}

/// Runs cargo, with its messages on our stderr, and finds what it made.
fn cargo_build(directory: &Path, options: &Options) -> Result<PathBuf> {
    let cargo = program("CARGO", "cargo");
    let mut command = Command::new(&cargo);
    // What the compiler says is printed here as cargo would do it, and looked at.
    let format = match std::io::stderr().is_terminal() {
        true => "--message-format=json-diagnostic-rendered-ansi",
        false => "--message-format=json",
    };
    command
        .current_dir(directory)
        .args(["build", "--config=net.git-fetch-with-cli=true", format])
        .arg(format!("--target={TARGET}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if !options.debug {
        command.arg("--release");
    }
    if let Some(features) = &options.features {
        command.arg(format!("--features={features}"));
    }
    if options.ignore_rust_version {
        command.arg("--ignore-rust-version");
    }
    let shown = cargo.display();
    let cannot_run = |e: std::io::Error| {
        let text = format!("cannot run {shown}. https://rustup.rs tells how to install Rust");
        Error::caused("LC0611", text, e)
    };
    let mut child = command.spawn().map_err(cannot_run)?;
    let (mut artifact, mut failures) = (None, Vec::new());
    for line in BufReader::new(child.stdout.take().expect("stdout is piped")).lines() {
        let line = line.map_err(cannot_run)?;
        match Message::parse(&line) {
            Some(Message::Artifact(path)) => artifact = Some(path),
            Some(Message::Said { text, failure }) => {
                remark_text!("{text}");
                failures.extend(failure.filter(|_| failures.len() < FAILURES_MAX));
            }
            None => {}
        }
    }
    let status = child.wait().map_err(cannot_run)?;
    if !status.success() {
        let features = options.features.as_deref();
        let compiled_nothing = failures.is_empty() && !options.ignore_rust_version;
        let newer = compiled_nothing.then(|| newer_than_compiler(directory, features));
        let why = match (Absent::of_failures(&failures), newer.flatten()) {
            (Some(absent), _) => absent.explain(directory, features),
            (None, Some(newer)) => newer,
            (None, None) => "cargo could not build the module; its messages are above".to_owned(),
        };
        return Err(Error::coded("LC0613", why));
    }
    artifact.filter(|path| path.extension().is_some_and(|e| e == "wasm")).ok_or_else(|| {
        coded!("LC0613", "cargo built no WebAssembly file. The module's Cargo.toml needs: [lib] crate-type = [\"cdylib\"]")
    })
}

/// What cargo says in a line.
#[derive(Debug, PartialEq)]
enum Message {
    /// The first file of a compiled package.
    Artifact(PathBuf),
    Said {
        text: String,
        failure: Option<Failure>,
    },
}

impl Message {
    fn parse(line: &str) -> Option<Self> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        if message["reason"] == "compiler-artifact" {
            return Some(Self::Artifact(message["filenames"][0].as_str()?.into()));
        }
        if message["reason"] != "compiler-message" {
            return None;
        }
        let said = &message["message"];
        let is_count = said["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("aborting due to") || text.ends_with(" emitted"));
        let text = said["rendered"].as_str().filter(|_| !is_count)?;
        let package = message["target"]["name"].as_str().unwrap_or_default();
        let failure = || Failure {
            package: package.replace('_', "-"),
            text: plain_text_of(said),
        };
        Some(Self::Said {
            text: format!("{}\n\n", text.trim_end()),
            failure: (said["level"] == "error").then(failure),
        })
    }
}

/// A message with what belongs to it: what the linker says is a note of the error.
fn plain_text_of(said: &serde_json::Value) -> String {
    let children = said["children"].as_array().into_iter().flatten();
    let texts = std::iter::once(said).chain(children);
    let texts: Vec<_> = texts.filter_map(|one| one["message"].as_str()).collect();
    texts.join("\n")
}

/// Refuses what no host of modules can run.
fn check(directory: &Path, path: &Path, options: &Options) -> Result<()> {
    let names = wasm::names_of(path)?;
    let imports = names.imports.iter();
    let imports = imports.flat_map(|(module, field)| [module, field]);
    let all = imports.chain(&names.exports).map(String::as_str);
    let Some(absent) = Absent::of_names(all) else {
        return Ok(());
    };
    let why = absent.explain(directory, options.features.as_deref());
    bail!("LC0613", "{}: {why}", path.display())
}

/// Lets wasm-opt make the file smaller and faster, if it is there.
fn optimise(path: PathBuf) -> PathBuf {
    let optimised = path.with_extension("opt.wasm");
    let _progress = Progress::start("Optimising the module");
    let status = Command::new("wasm-opt")
        .args(["-all", "-g", "-O2"])
        .arg(&path)
        .arg("-o")
        .arg(&optimised)
        .stdout(output::of_children())
        .status();
    match status {
        Ok(status) if status.success() => return optimised,
        Ok(_) => remark!("wasm-opt failed; the module is used as it is."),
        Err(_) => remark!("Could not find wasm-opt to optimise the module; it works without. It is part of `binaryen`."),
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_are_found() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let deep = directory.path().join("src/a");
        std::fs::create_dir_all(&deep).expect("created");
        std::fs::write(deep.join("b.rs"), "fn f() {\n    dbg!(1);\n}\n").expect("written");
        std::fs::write(deep.join("c.txt"), "println!").expect("written");
        let error = lint(directory.path(), "src")
            .expect_err("a print")
            .to_string();
        assert!(
            error.contains("b.rs:2: dbg!(1);") && !error.contains("c.txt"),
            "{error}"
        );
        assert!(lint(directory.path(), "").is_ok());
        assert!(lint(directory.path(), "elsewhere").is_ok());
    }

    #[test]
    fn cargos_messages_are_read() {
        let line = r#"{"reason":"compiler-artifact","filenames":["/t/x.wasm","/t/y"]}"#;
        assert_eq!(
            Message::parse(line),
            Some(Message::Artifact("/t/x.wasm".into()))
        );
        let line = r#"{"reason":"compiler-message","target":{"name":"my_module"},"message":{"level":"error","message":"linking failed",
            "rendered":"error: linking failed\n\n","children":[{"message":"undefined symbol: f"}]}}"#;
        let failure = Failure {
            package: "my-module".into(),
            text: "linking failed\nundefined symbol: f".into(),
        };
        assert_eq!(
            Message::parse(line),
            Some(Message::Said {
                text: "error: linking failed\n\n".into(),
                failure: Some(failure)
            })
        );
        let warning = line.replace(r#""level":"error""#, r#""level":"warning""#);
        assert!(matches!(
            Message::parse(&warning),
            Some(Message::Said { failure: None, .. })
        ));
        for line in [r#"{"reason":"build-finished"}"#, "nonsense", "{}"] {
            assert_eq!(Message::parse(line), None, "{line}");
        }
    }
}
