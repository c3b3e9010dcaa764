//! `init`, and what `dev` makes of a project, before there is a server.

use crate::common;
use crate::common::Home;

#[test]
fn init_writes_a_project() {
    let home = Home::new();
    let made = home
        .run(&[
            "init",
            "My App",
            "-t",
            "chat-react-ts",
            "--local",
            "--non-interactive",
        ])
        .ok();
    assert!(made.stderr.contains("spacetime dev"), "{made:#?}");
    let read =
        |name: &str| std::fs::read_to_string(home.path(&format!("my-app/{name}"))).expect(name);
    let config: serde_json::Value = serde_json::from_str(&read("spacetime.json")).expect("JSON");
    assert_eq!(
        config,
        serde_json::json!({ "server": "local", "module-path": "./spacetimedb" })
    );
    let local: serde_json::Value =
        serde_json::from_str(&read("spacetime.local.json")).expect("JSON");
    let database = local["database"].as_str().expect("a name").to_owned();
    assert!(
        database.starts_with("my-app-") && database.len() == 12,
        "{database}"
    );
    let environment = read(".env.local");
    assert_eq!(environment.lines().count(), 12);
    assert!(
        environment.contains(&format!(
            "VITE_SPACETIMEDB_DB_NAME={database}\nVITE_SPACETIMEDB_HOST=ws://localhost:3000\n"
        )),
        "{environment}"
    );
    let package: serde_json::Value = serde_json::from_str(&read("package.json")).expect("JSON");
    assert_eq!(
        (&package["name"], &package["dependencies"]["lightcone"]),
        (&"my-app".into(), &"^0.1.0".into())
    );
    // The first is shared by templates of pages; the second by all of TypeScript; the third is not, and this template's own.
    assert!(read("src/settings.ts").contains(&database));
    assert!(read(".gitignore").contains("node_modules"));
    assert!(read("spacetimedb/src/index.ts").contains("sendMessage"));
    assert!(read("README.md").starts_with("# My App\n"));
    assert_eq!(read("AGENTS.md"), read("CLAUDE.md"));
    for name in [
        ".cursor/rules/spacetimedb.mdc",
        ".windsurfrules",
        ".github/copilot-instructions.md",
    ] {
        assert!(read(name).contains("ctx.timestamp"), "{name}");
    }

    let again = home.run(&[
        "init",
        "My App",
        "-t",
        "basic-ts",
        "--local",
        "--non-interactive",
    ]);
    assert!(
        again.status == 1
            && again.stderr.contains("is not empty")
            && again.stderr.contains("[LC0637]"),
        "{again:#?}"
    );
}

#[test]
fn init_of_a_module_alone_and_of_other_versions() {
    let home = Home::new();
    home.run(&["init", "a", "--lang", "rust", "--non-interactive"])
        .ok();
    assert!(home.path("a/spacetimedb/Cargo.toml").is_file() && !home.path("a/Cargo.toml").exists());
    let spec = [
        "init",
        "b",
        "-t",
        "basic-ts",
        "--npm-sdk",
        "npm:lightcone@0.1.0",
        "--non-interactive",
        "--project-path",
        "deep/b",
    ];
    home.run(&spec).ok();
    for name in ["deep/b/package.json", "deep/b/spacetimedb/package.json"] {
        let package = std::fs::read_to_string(home.path(name)).expect("written");
        assert!(
            package.contains("\"lightcone\": \"npm:lightcone@0.1.0\""),
            "{package}"
        );
    }
    assert!(home
        .run(&["init", "--template"])
        .ok()
        .stdout
        .contains("chat-react-ts"));
    for (args, status, part) in [
        (
            &["init", "c", "--non-interactive"][..],
            2,
            "--template and --lang",
        ),
        (
            &["init", "--template", "basic-ts", "--non-interactive"],
            2,
            "the name",
        ),
        (
            &["init", "c", "--template", "x", "--non-interactive"],
            1,
            "[LC0637]",
        ),
        (
            &[
                "init",
                "c",
                "--lang",
                "csharp",
                "--native-aot",
                "--dotnet-version=8",
                "--non-interactive",
            ],
            1,
            "[LC0601]",
        ),
        (
            &[
                "init",
                "c",
                "--lang",
                "rust",
                "--dotnet-version=10",
                "--non-interactive",
            ],
            1,
            "[LC0637]",
        ),
        (
            &["init", "c", "--lang", "rust", "--template", "basic-rs"],
            2,
            "cannot be used",
        ),
        (
            &["init", "---", "--lang", "rust", "--non-interactive"],
            2,
            "",
        ),
    ] {
        let failed = home.run(args);
        assert!(
            failed.status == status && failed.stderr.contains(part),
            "{args:?}: {failed:#?}"
        );
    }
}

#[test]
fn init_asks_when_it_may() {
    let home = Home::new();
    // Name, path, database name, template, package manager.
    let made = home
        .run_with(
            &["init", "--local"],
            "Shop\n\nshop-db\nbasic-ts\nnone\n",
            &[],
        )
        .ok();
    assert!(
        made.stderr.contains("Project name (my-spacetime-app)") && made.stderr.contains("./shop"),
        "{made:#?}"
    );
    let local = std::fs::read_to_string(home.path("shop/spacetime.local.json")).expect("written");
    assert!(local.contains("\"shop-db\""), "{local}");
}

/// What the files of a project say is not contradicted on the command line and forgotten again.
#[test]
fn development_keeps_to_the_project() {
    let home = Home::new();
    home.write("a/m/Cargo.toml", "[package]\nname = \"m\"\n");
    home.write("a/deep/x", "");
    let dev = |args: &[&str]| {
        let all = [&["dev", "--server-only", "--project-path", "a"], args].concat();
        home.run(&all)
    };
    home.write(
        "a/spacetime.json",
        "{ database: 'shop', 'module-path': 'm' }",
    );
    let contradicted = dev(&["--module-path", "a/m"]);
    assert!(
        contradicted.status == 1
            && contradicted
                .stderr
                .contains("--module-path contradicts `module-path`")
            && contradicted.stderr.contains("[LC0884]"),
        "{contradicted:#?}"
    );
    home.write("a/spacetime.json", "{ generate: [{ language: 'rust' }] }");
    for (args, option) in [
        (
            &["dev", "--project-path", "a", "--module-path", "a/m"][..],
            "--module-path",
        ),
        (
            &["dev", "--project-path", "a", "--module-bindings-path", "b"],
            "--module-bindings-path",
        ),
        (&["dev", "--project-path", "a/deep"], "--project-path"),
    ] {
        let contradicted = home.run(args);
        let words = format!("{option} contradicts `generate`");
        assert!(
            contradicted.status == 1
                && contradicted.stderr.contains(&words)
                && contradicted.stderr.contains("[LC0884]"),
            "{contradicted:#?}"
        );
    }
    // The directory of the file contradicts nothing; but it does not say where the module is, and there is no terminal to ask at.
    let unknown = dev(&[]);
    assert!(
        unknown.status == 1 && unknown.stderr.contains("[LC0610]"),
        "{unknown:#?}"
    );
    let absolute = dev(&["--module-bindings-path", "/b"]);
    assert_eq!(absolute.status, 2, "{absolute:#?}");
}

/// At a terminal, the path of the module is asked for, and kept in the file without losing its comments.
#[cfg(unix)]
#[test]
fn development_asks_where_the_module_is() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let home = Home::new();
    home.write("m/Cargo.toml", "[package]\nname = \"m\"\n");
    home.write(
        "spacetime.json",
        "{ // ours\n server: 'http://127.0.0.1:9' }",
    );
    let line = format!(
        "{} --root-dir {} dev --server-only",
        env!("CARGO_BIN_EXE_spacetime"),
        home.path("root").display()
    );
    let script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    // A system without `script` has no terminal to give.
    let Ok(mut process) = script else { return };
    let mut stdin = process.stdin.take().expect("piped");
    stdin.write_all(b"m\n").expect("written");
    let output = process.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("does not say where the module is"), "{said}");
    // It goes on to the server, which is not there.
    assert!(said.contains("[LC0602]"), "{said}");
    let file = std::fs::read_to_string(home.path("spacetime.json")).expect("kept");
    assert_eq!(
        file,
        "{\n  \"module-path\": \"m\", // ours\n server: 'http://127.0.0.1:9' }"
    );
}

/// A new project has neither packages nor a server: development installs the one, starts the other, and ends it with itself.
#[cfg(unix)]
#[test]
fn development_installs_packages_and_starts_a_server() {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("known").to_string();
    drop(listener);
    let config = format!(
        "default_server = \"local\"\n[[server_configs]]\nnickname = \"local\"\nhost = \"{address}\"\nprotocol = \"http\"\n"
    );
    home.write("root/config/cli.toml", &config);
    home.write("spacetime.json", "{ database: 'shop', 'module-path': 'm' }");
    home.write("m/package.json", "{ \"dependencies\": { \"a\": \"1\" } }");
    home.write("m/src/index.ts", "this is no program");
    home.write("bin/npm", "#!/bin/sh\necho \"$PWD $@\" > ../asked\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path("bin/npm"), executable).expect("executable");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", home.path("bin").display());

    let failed = home.run_with(&["dev", "--yes"], "", &[("PATH", &path)]);
    let started = format!("Started a server on {address}");
    assert!(
        failed.status == 1 && failed.stderr.contains(&started),
        "{failed:#?}"
    );
    let asked = std::fs::read_to_string(home.path("asked")).expect("npm was run");
    assert!(asked.ends_with("/m install\n"), "{asked}");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while TcpStream::connect(&address).is_ok() {
        assert!(std::time::Instant::now() < until, "the server goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// On a server that is not this machine's own, one of the user's databases can be chosen by its number.
#[cfg(target_os = "linux")]
#[test]
fn development_offers_the_databases_there() {
    let server = common::Mock::start_at("127.0.0.2:0", |r| match r.path.as_str() {
        path if path.ends_with("/databases") => common::json(r#"{"identities":["c2aa","c2bb"]}"#),
        "/v1/database/c2aa/names" => common::json(r#"{"names":["shop","store"]}"#),
        path if path.ends_with("/names") => common::json(r#"{"names":[]}"#),
        _ => common::text(404, ""),
    });
    for (input, name) in [("1\n", "shop"), ("2\n", "c2bb"), ("mine\n", "mine")] {
        let home = Home::new();
        home.log_in("ann", &server.url);
        home.write("m/Cargo.toml", "[package]\nname = \"m\"\n");
        let file = format!("{{ server: '{}', 'module-path': 'm' }}", server.url);
        home.write("spacetime.json", &file);
        let no_build = [("CARGO", "false"), ("CARGO_UNSTABLE_BUILD_STD", "std")];
        let asked = home.run_with(&["dev", "--server-only"], input, &no_build);
        assert!(
            asked.stderr.contains("  1  shop\n  2  c2bb\n")
                && asked
                    .stderr
                    .contains(&format!("The database is called {name}.")),
            "{asked:#?}"
        );
        let local = std::fs::read_to_string(home.path("spacetime.local.json")).expect("written");
        assert!(
            local.contains(&format!("\"database\": \"{name}\"")),
            "{local}"
        );
    }
    let home = Home::new();
    home.log_in("ann", &server.url);
    home.write("m/Cargo.toml", "[package]\nname = \"m\"\n");
    let file = format!("{{ server: '{}', 'module-path': 'm' }}", server.url);
    home.write("spacetime.json", &file);
    let wrong = home.run_with(&["dev", "--server-only"], "3\n", &[]);
    assert!(
        wrong.status == 1 && wrong.stderr.contains("[LC0608]"),
        "{wrong:#?}"
    );
    assert!(!home.path("spacetime.local.json").exists());
}

#[test]
fn init_offers_what_there_is() {
    let home = Home::new();
    let help = home.run(&["init", "--help"]).ok().stdout;
    assert!(
        help.contains("[possible values: rust, typescript, csharp, cpp]"),
        "{help}"
    );
    for flag in ["--native-aot", "--dotnet-version <8|10>"] {
        assert!(help.contains(flag), "{help}");
    }
}

/// Compiled by Mono against the names of the package that the template uses, not against the package itself: the .NET SDK cannot be
/// had here.
#[test]
fn the_template_in_csharp_compiles() {
    let home = Home::new();
    let made = home
        .run(&["init", "My App", "--lang", "c#", "--non-interactive"])
        .ok();
    assert!(made.stderr.contains("spacetime publish"), "{made:#?}");
    let module = home.path("my-app/spacetimedb");
    let read = |name: &str| std::fs::read_to_string(module.join(name)).expect(name);
    assert!(
        read("StdbModule.csproj").contains(r#"Include="SpacetimeDB.Runtime" Version="2.10.*""#),
        "{}",
        read("StdbModule.csproj")
    );
    assert_eq!(read(".gitignore"), "bin\nobj\n");
    assert!(!home.path("my-app/.env.local").exists());
    std::fs::write(module.join("Runtime.cs"), include_str!("csharp/Runtime.cs")).expect("written");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = std::process::Command::new(root.join("scripts/csharp-compile.sh"))
        .arg(&module)
        .output()
        .expect("scripts/csharp-compile.sh runs");
    let said = String::from_utf8_lossy(&output.stderr);
    // It ends with 77 where there is no compiler.
    match output.status.code() {
        Some(77) => eprintln!("{said}"),
        status => assert_eq!(
            status,
            Some(0),
            "{said}{}",
            String::from_utf8_lossy(&output.stdout)
        ),
    }
}

/// The same program, with the files that the other compiler needs.
#[test]
fn a_project_for_the_newer_dotnet() {
    let home = Home::new();
    let init = ["init", "my-app", "--lang", "csharp", "--non-interactive"];
    home.run(
        &[
            &init[..],
            &["--dotnet-version", "10", "--project-path", "a"],
        ]
        .concat(),
    )
    .ok();
    home.run(&[&init[..], &["--native-aot", "--project-path", "b"]].concat())
        .ok();
    home.run(&[&init[..], &["--dotnet-version", "8", "--project-path", "c"]].concat())
        .ok();
    let read = |name: &str| std::fs::read_to_string(home.path(name)).expect(name);
    for directory in ["a", "b"] {
        let project = read(&format!("{directory}/spacetimedb/StdbModule.csproj"));
        for part in [
            "<TargetFramework>net10.0</TargetFramework>",
            r#"Include="SpacetimeDB.Runtime" Version="2.10.*""#,
            r#"Include="Microsoft.DotNet.ILCompiler.LLVM" Version="10.0.0-*""#,
        ] {
            assert!(project.contains(part), "{part}: {project}");
        }
        assert!(read(&format!("{directory}/spacetimedb/global.json")).contains("\"10.0.100\""));
        let feeds = read(&format!("{directory}/spacetimedb/NuGet.Config"));
        assert!(feeds.contains("/dotnet-experimental/"), "{feeds}");
        let program = read(&format!("{directory}/spacetimedb/Lib.cs"));
        assert_eq!(program, read("c/spacetimedb/Lib.cs"));
    }
    assert!(!home.path("c/spacetimedb/NuGet.Config").exists());
    for (directory, is_said) in [("a", false), ("b", true), ("c", false)] {
        let project = read(&format!("{directory}/spacetime.json"));
        assert_eq!(
            project.contains("\"native-aot\": true"),
            is_said,
            "{project}"
        );
    }
}
