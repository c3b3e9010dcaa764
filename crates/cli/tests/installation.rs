//! What is installed: versions, completions; and lists in JSON.

use crate::common::{json, text, Home, Mock, DATABASE};
use serde_json::Value;

const OWN: &str = env!("CARGO_PKG_VERSION");

#[cfg(unix)]
fn programs(home: &Home, directory: &str, says: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    for name in ["spacetime", "spacetimedb-standalone"] {
        let file = format!("{directory}/{name}");
        home.write(&file, &format!("#!/bin/sh\necho {says} \"$@\"\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(home.path(&file), mode).expect("executable");
    }
    home.path(directory).to_str().expect("UTF-8").to_owned()
}

#[cfg(unix)]
#[test]
fn versions_are_installed_chosen_and_removed() {
    let home = Home::new();
    let alone = home.run(&["version", "list"]).ok();
    assert_eq!(alone.stdout, format!("{OWN} (current)\n"));
    let (one, two) = (
        programs(&home, "one", "first"),
        programs(&home, "two", "second"),
    );
    home.run(&["version", "install", "2.9.0", "--from", &one, "--use"])
        .ok();
    home.run(&["version", "install", "2.10.0", "--from", &two])
        .ok();
    let list = home.run(&["version", "list"]).ok();
    assert_eq!(list.stdout, "2.10.0\n2.9.0 (current)\n");
    let run = |program: &str| {
        let output = std::process::Command::new(home.path(program))
            .arg("x")
            .output();
        String::from_utf8(output.expect("it runs").stdout).expect("UTF-8")
    };
    assert_eq!(run("root/spacetime"), "first x\n", "what a shell finds");
    assert_eq!(run("root/bin/current/spacetimedb-standalone"), "first x\n");
    home.run(&["version", "use", "2.10.0"]).ok();
    assert_eq!(run("root/spacetime"), "second x\n");
    assert_eq!(run("root/bin/current/spacetimedb-cli"), "second x\n");

    let json: Value = serde_json::from_str(
        &home
            .run(&["version", "list", "--format", "json"])
            .ok()
            .stdout,
    )
    .expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({ "versions": [{ "version": "2.10.0", "is_current": true }, { "version": "2.9.0", "is_current": false }] })
    );

    let kept = home.run_with(&["version", "install", "2.9.0", "--from", &two], "n\n", &[]);
    assert!(
        kept.status == 1 && kept.stderr.contains("Replace it? [y/N]"),
        "{kept:#?}"
    );
    assert_eq!(run("root/bin/2.9.0/spacetime"), "first x\n");
    home.run(&["version", "install", "2.9.0", "--from", &two, "-y"])
        .ok();
    assert_eq!(run("root/bin/2.9.0/spacetime"), "second x\n");

    let used = home.run(&["version", "uninstall", "2.10.0", "-y"]);
    assert!(
        used.status == 1 && used.stderr.contains("[LC0882]"),
        "{used:#?}"
    );
    let no = home
        .run_with(&["version", "uninstall", "2.9.0"], "n\n", &[])
        .ok();
    assert!(
        no.stderr.ends_with("Aborting\n") && home.path("root/bin/2.9.0").exists(),
        "{no:#?}"
    );
    home.run(&["version", "uninstall", "2.9.0", "-y"]).ok();
    let left: Vec<String> = std::fs::read_dir(home.path("root/bin"))
        .expect("the versions")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != "current")
        .collect();
    assert_eq!(left, ["2.10.0"], "nothing is left behind");
}

/// A developer of the programs uses them where they are.
#[cfg(unix)]
#[test]
fn versions_are_linked_to_directories() {
    let home = Home::new();
    let (one, two) = (
        programs(&home, "one", "first"),
        programs(&home, "two", "second"),
    );
    home.run(&["version", "install", "2.9.0", "--from", &one, "--use"])
        .ok();
    home.run(&["version", "link", "2.9.1-mine", &two, "--use"])
        .ok();
    let run = || {
        let output = std::process::Command::new(home.path("root/spacetime"))
            .arg("x")
            .output();
        String::from_utf8(output.expect("it runs").stdout).expect("UTF-8")
    };
    assert_eq!(run(), "second x\n");
    programs(&home, "two", "third");
    assert_eq!(run(), "third x\n", "what is there now");
    let place = std::fs::canonicalize(&two).expect("there");
    let place = place.to_str().expect("UTF-8");
    let list = home.run(&["version", "list"]).ok();
    assert_eq!(
        list.stdout,
        format!("2.9.1-mine (current) -> {place}\n2.9.0\n")
    );
    let json = home.run(&["version", "list", "--format", "json"]).ok();
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["versions"][0]["linked_to"], place);

    for args in [
        &["link", "2.9.0", &two][..],
        &["link", "mine", &two],
        &["link", "2.9.2", "nowhere"],
        &["link", "2.9.2", "root"],
        &["uninstall", "2.9.1-mine", "-y"],
    ] {
        let refused = home.run(&[&["version"], args].concat());
        assert!(
            refused.status == 1 && refused.stderr.contains("LC"),
            "{args:?}: {refused:#?}"
        );
    }
    let kept = home.run_with(&["version", "link", "2.9.1-mine", &one], "n\n", &[]);
    assert_eq!(kept.status, 1, "{kept:#?}");
    assert_eq!(run(), "third x\n");
    home.run(&["version", "link", "2.9.1-mine", &one, "-y"])
        .ok();
    assert_eq!(run(), "first x\n");
    home.run(&["version", "use", "2.9.0"]).ok();
    home.run(&["version", "uninstall", "2.9.1-mine", "-y"]).ok();
    assert!(
        home.path("one/spacetime").is_file() && home.path("two/spacetime").is_file(),
        "the programs stay where they are"
    );
    assert!(!home.path("root/bin/2.9.1-mine").exists());
}

#[cfg(unix)]
#[test]
fn what_cannot_be_installed_is_told() {
    let home = Home::new();
    let half = home.path("half");
    home.write("half/spacetime", "");
    let from_half = half.to_str().expect("UTF-8");
    for (args, code) in [
        (&["use", "2.9.0"][..], "LC0882"),
        (&["uninstall", "2.9.0", "-y"], "LC0882"),
        (&["uninstall", "../data", "-y"], "LC0882"),
        (&["install", "../x", "--from", from_half], "LC0882"),
        (&["install", "2.9.0", "--from", from_half], "LC0882"),
        (&["install", "2.9.0"], "LC0883"),
        (&["upgrade"], "LC0883"),
    ] {
        let refused = home.run(&[&["version"], args].concat());
        assert!(
            refused.status == 1 && refused.stderr.contains(&format!("[{code}]")),
            "{args:?}: {refused:#?}"
        );
    }
    assert!(!home.path("root/bin/2.9.0").exists());
    // A program that the user has put there stays.
    home.write("root/spacetime", "mine");
    let all = programs(&home, "all", "all");
    let used = home
        .run(&["version", "install", "2.9.0", "--from", &all, "--use"])
        .ok();
    assert!(used.stderr.contains("was left alone"), "{used:#?}");
    assert_eq!(
        std::fs::read_to_string(home.path("root/spacetime")).expect("text"),
        "mine"
    );
}

#[cfg(unix)]
#[test]
fn this_program_installs_itself() {
    let home = Home::new();
    home.run(&["version", "self-install", "-y"]).ok();
    let list = home.run(&["version", "list"]).ok();
    assert_eq!(list.stdout, format!("{OWN} (current)\n"));
    let output = std::process::Command::new(home.path("root/spacetime"))
        .arg("-V")
        .output();
    let said = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
    assert_eq!(said, format!("spacetime {OWN}\n"));
}

#[test]
fn shells_are_told_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = home.run(&["completions", shell]).ok();
        assert!(
            ["publish", "doctor", "--delete-data"]
                .iter()
                .all(|word| script.stdout.contains(word.trim_start_matches('-'))),
            "{shell}: {}",
            script.stdout
        );
        assert_eq!(script.stderr, "", "nothing is written beside it");
    }
    assert!(!home.path("root").exists());
    assert_eq!(home.run(&["completions", "cmd"]).status, 2);
}

/// The script of a real shell completes a command, an option and a value.
#[cfg(unix)]
#[test]
fn bash_completes() {
    let home = Home::new();
    let script = home.run(&["completions", "bash"]).ok().stdout;
    home.write("completions.bash", &script);
    let complete = |words: &[&str]| {
        let line = format!(
            ". {}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_spacetime spacetime '{}' '{}'\necho \"${{COMPREPLY[@]}}\"\n",
            home.path("completions.bash").display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = std::process::Command::new("bash")
            .args(["-c", &line])
            .output();
        String::from_utf8(output.expect("bash runs").stdout).expect("UTF-8")
    };
    assert_eq!(complete(&["spacetime", "doc"]), "doctor\n");
    assert_eq!(complete(&["spacetime", "server", "ed"]), "edit\n");
    assert_eq!(complete(&["spacetime", "logs", "--num"]), "--num-lines\n");
    assert_eq!(complete(&["spacetime", "init", "--lang", "r"]), "rust\n");
}

#[test]
fn lists_in_json() {
    let home = Home::new();
    let parse = |text: &str| -> Value {
        assert_eq!(text.lines().count(), 1, "one line: {text}");
        serde_json::from_str(text).expect("JSON")
    };
    let servers = parse(
        &home
            .run(&["server", "list", "--format", "json"])
            .ok()
            .stdout,
    );
    assert_eq!(
        servers["servers"][1],
        serde_json::json!({
            "nickname": "local", "host": "127.0.0.1:3000", "protocol": "http", "url": "http://127.0.0.1:3000",
            "is_default": true, "allow_insecure": false, "has_fingerprint": false,
        })
    );
    let templates = parse(
        &home
            .run(&["init", "--template", "--format", "json"])
            .ok()
            .stdout,
    );
    assert!(
        templates["templates"]
            .as_array()
            .is_some_and(|t| t.iter().any(|t| t["name"] == "basic-ts")),
        "{templates}"
    );

    let server = Mock::start(|r| match r.path.as_str() {
        path if path.ends_with("/databases") => json(format!(r#"{{"identities":["{DATABASE}"]}}"#)),
        path if path.ends_with("/names") => json(r#"{"names":["shop","store"]}"#),
        _ => text(404, ""),
    });
    let me = home.log_in("ann", &server.url);
    let list = parse(
        &home
            .run(&["list", "-s", &server.url, "--format", "json"])
            .ok()
            .stdout,
    );
    assert_eq!(
        list,
        serde_json::json!({ "server": server.url, "owner": me, "databases": [{ "identity": DATABASE, "names": ["shop", "store"] }], "shared": [] })
    );
    let none = Mock::start(|_| json(r#"{"identities":[]}"#));
    home.log_in("ann", &none.url);
    let list = parse(
        &home
            .run(&["list", "-s", &none.url, "--format", "json"])
            .ok()
            .stdout,
    );
    assert_eq!(
        list["databases"],
        serde_json::json!([]),
        "an empty list is a list"
    );
}

/// What waits says so, at a terminal; what is piped is not disturbed.
#[cfg(unix)]
#[test]
fn long_work_shows_on_terminals_only() {
    let home = Home::new();
    let slow = Mock::start(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1600));
        text(200, "")
    });
    let ping = ["server", "ping", &slow.url];
    let piped = home.run(&ping).ok();
    assert!(!format!("{piped:?}").contains("Waiting"), "{piped:#?}");
    let at_terminal = |term: &str| {
        let line = format!(
            "{} --root-dir {} {}",
            env!("CARGO_BIN_EXE_spacetime"),
            home.path("root").display(),
            ping.join(" ")
        );
        let output = std::process::Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", term)
            .env("NO_PROXY", "127.0.0.1")
            .stdin(std::process::Stdio::null())
            .output();
        // A system without `script` has nothing to look at.
        output
            .ok()
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if let Some(said) = at_terminal("xterm") {
        assert!(
            said.contains(&format!("Waiting for {}", slow.url)),
            "{said:?}"
        );
        assert!(said.contains("Server is online"), "{said:?}");
    }
    if let Some(said) = at_terminal("dumb") {
        assert!(!said.contains("Waiting"), "{said:?}");
    }
}

/// Sources embed files from beside the crates, which the build of the image needs too.
#[test]
fn the_image_is_built_from_all_that_is_embedded() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dockerfile = std::fs::read_to_string(root.join("Dockerfile")).expect("the file");
    let mut sources = vec![root.join("crates")];
    let mut embedded = Vec::new();
    while let Some(path) = sources.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("listed");
            let entries = entries.map(|entry| entry.expect("an entry").path());
            sources.extend(
                entries.filter(|path| !path.ends_with("tests") && !path.ends_with("benches")),
            );
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source");
        for line in text.lines().filter(|line| line.contains("include_")) {
            // Whatever is in the root of the repository has a way up to it.
            let Some((_, below)) = line.rsplit_once("../../") else {
                continue;
            };
            let directory = below.split(['/', '"']).next().unwrap_or_default();
            if root.join(directory).exists() && !path.with_file_name(directory).exists() {
                embedded.push((path.clone(), directory.to_owned()));
            }
        }
    }
    assert!(embedded
        .iter()
        .any(|(_, directory)| directory == "templates"));
    for (path, directory) in embedded {
        let copies = format!("COPY {directory} {directory}");
        let is_copied = dockerfile.lines().any(|line| line == copies);
        assert!(is_copied, "{} embeds {directory}", path.display());
    }
}
