//! `init`, `build` of TypeScript and `generate`, against no server at all.

mod common;

use common::Home;

/// A stand-in for the npm package: it imports what the real one imports from the host.
fn write_module(home: &Home, index: &str) {
    home.write(
        "m/package.json",
        r#"{"name":"m","dependencies":{"spacetimedb":"2.10.*"}}"#,
    );
    home.write("m/src/index.ts", index);
    home.write(
        "m/node_modules/spacetimedb/package.json",
        r#"{"name":"spacetimedb","exports":{"./server":"./server.js","./old":"./old.js"}}"#,
    );
    home.write(
        "m/node_modules/spacetimedb/server.js",
        "import * as sys from 'spacetime:sys@2.0';\nexport const schema = s => ({ s, sys });\n",
    );
    home.write(
        "m/node_modules/spacetimedb/old.js",
        "import * as sys from 'spacetime:sys@1.0';\nexport const old = sys;\n",
    );
}

const MODULE: &str = "import { schema } from 'spacetimedb/server';
type Kind = 'a' | 'b';
/*! legal */
const kind: Kind = process.env.NODE_ENV === 'production' ? 'a' : 'b';
export const shown = kind;
export default schema({ kind });
";

#[test]
fn typescript_is_bundled() {
    let home = Home::new();
    write_module(&home, MODULE);
    let built = home.run(&["build", "-p", "m"]).ok();
    assert!(
        built.stdout.contains("Could not find TypeScript")
            && built.stdout.ends_with("Build finished successfully.\n"),
        "{built:#?}"
    );
    let bundle = std::fs::read_to_string(home.path("m/dist/bundle.js")).expect("the bundle");
    assert!(bundle.contains("from \"spacetime:sys@2.0\""), "{bundle}");
    assert!(
        bundle.contains("as default") && bundle.contains("shown"),
        "{bundle}"
    );
    assert!(bundle.contains("sourceMappingURL=data:"), "{bundle}");
    assert!(
        !bundle.contains("Kind") && !bundle.contains("legal") && !bundle.contains("process.env"),
        "{bundle}"
    );
    assert!(bundle.contains("\"a\""), "{bundle}");
    home.run(&["build", "-p", "m", "--debug"]).ok();
    let debug = std::fs::read_to_string(home.path("m/dist/bundle.js")).expect("the bundle");
    assert_ne!(bundle, debug);
}

#[test]
fn mistakes_in_typescript_are_told_with_their_place() {
    let home = Home::new();
    for (index, parts) in [
        ("export default {;\n", &["[LC0635]", "index.ts"][..]),
        ("import x from 'nowhere';\nexport default x;\n", &["[LC0635]", "nowhere", "Module not found.", "npm install"]),
        ("import { missing } from 'spacetimedb/server';\nexport default missing;\n", &["[LC0635]", "missing"]),
        ("export default 1;\n", &["[LC0636]", "does not import `spacetimedb/server`"]),
        ("import { schema } from 'spacetimedb/server';\nexport const x = schema({});\n", &["[LC0636]", "export default"]),
        (
            "import { schema } from 'spacetimedb/server';\nimport { old } from 'spacetimedb/old';\nexport default schema(old);\n",
            &["[LC0636]", "2 different versions"],
        ),
    ] {
        write_module(&home, index);
        let failed = home.run(&["build", "-p", "m"]);
        assert_eq!(failed.status, 1, "{failed:#?}");
        for part in parts {
            assert!(failed.stderr.contains(part), "{part} in {failed:#?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn type_errors_end_the_build_with_the_compilers_status() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    write_module(&home, MODULE);
    home.write(
        "m/node_modules/.bin/tsc",
        "#!/bin/sh\necho \"src/index.ts(1,1): error $*\"\nexit 2\n",
    );
    let tsc = home.path("m/node_modules/.bin/tsc");
    std::fs::set_permissions(&tsc, std::fs::Permissions::from_mode(0o755))
        .expect("made executable");
    let failed = home.run(&["build", "-p", "m"]);
    assert_eq!(
        (failed.status, failed.stderr.contains("Error")),
        (2, false),
        "{failed:#?}"
    );
    assert!(failed.stdout.contains("error --noEmit"), "{failed:#?}");
    assert!(!home.path("m/dist/bundle.js").exists());
}

const DEFINITION: &str = include_str!("../../codegen/tests/golden/coverage.json");

#[test]
fn bindings_are_written_once_and_old_ones_deleted() {
    let home = Home::new();
    home.write("definition.json", DEFINITION);
    home.write("package.json", r#"{"dependencies":{"lightcone":"0.1.0"}}"#);
    let first = home
        .run(&["generate", "--module-def", "definition.json"])
        .ok();
    assert!(
        first
            .stdout
            .contains("Skipping private tables during codegen: banned, secrets."),
        "{first:#?}"
    );
    assert!(
        first.stdout.ends_with("Generate finished successfully.\n"),
        "{first:#?}"
    );
    let index =
        std::fs::read_to_string(home.path("src/module_bindings/index.ts")).expect("written");
    assert!(
        index.contains("from \"lightcone\";"),
        "package.json decides"
    );
    let second = home
        .run_with(&["generate", "--module-def"], DEFINITION, &[])
        .ok();
    assert!(!second.stdout.contains("Writing file"), "{second:#?}");

    let old = "// THIS FILE IS AUTOMATICALLY GENERATED BY SPACETIMEDB. x\n";
    home.write("src/module_bindings/deep/old_table.ts", old);
    home.write("src/module_bindings/mine.ts", "export {};\n");
    let kept = home
        .run(&["generate", "--module-def", "definition.json"])
        .ok();
    assert!(
        kept.stdout.contains("old_table.ts")
            && home.path("src/module_bindings/deep/old_table.ts").exists(),
        "{kept:#?}"
    );
    home.run(&["generate", "--module-def", "definition.json", "-y"])
        .ok();
    assert!(!home.path("src/module_bindings/deep/old_table.ts").exists());
    assert!(home.path("src/module_bindings/mine.ts").exists());

    let flag = [
        "generate",
        "--module-def",
        "definition.json",
        "--client-package",
        "spacetimedb",
        "--out-dir",
        "x",
    ];
    home.run(&flag).ok();
    let index = std::fs::read_to_string(home.path("x/index.ts")).expect("written");
    assert!(index.contains("from \"spacetimedb\";"), "the flag decides");
}

/// Neither CMake nor Emscripten is where nothing is.
#[test]
fn cpp_asks_for_its_tools() {
    let home = Home::new();
    home.write("m/CMakeLists.txt", "");
    let build = ["build", "-p", "m"];
    let failed = home.run_with(&build, "", &[("PATH", "/nowhere")]);
    assert!(
        failed.status == 1
            && failed.stderr.contains("[LC0611]")
            && failed.stderr.contains("`cmake`"),
        "{failed:#?}"
    );
}

/// A stand-in for the .NET SDK: it writes down how it is called, and makes the file that the real one makes.
#[cfg(unix)]
const DOTNET: &str = r#"#!/bin/sh
echo "aot=$EXPERIMENTAL_WASM_AOT $*" >>"$LOG"
case "$1" in
--version) echo "$SDK.0.100" ;;
workload) [ "$2" = install ] || echo "Installed Workload Id" ;;
publish)
    [ -z "$EXPERIMENTAL_WASM_AOT" ] && place=AppBundle || place=native
    mkdir -p "bin/$3/$5/wasi-wasm/$place"
    [ -n "$BROKEN" ] || echo >"bin/$3/$5/wasi-wasm/$place/StdbModule.wasm" ;;
esac
"#;

#[cfg(unix)]
#[test]
fn csharp_is_built_as_the_sdk_wants_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.write("tools/dotnet", DOTNET);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path("tools/dotnet"), executable).expect("made executable");
    home.write(
        "m/StdbModule.csproj",
        "<TargetFramework>net8.0</TargetFramework>",
    );
    home.write("m/obj/project.assets.json", "{}");
    let tools = home.path("tools");
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let log = home.path("log");
    let build = |sdk: &str, more: &[&str], broken: &str| {
        let _ = std::fs::remove_file(&log);
        let log_text = log.display().to_string();
        let variables = [
            ("PATH", &path[..]),
            ("LOG", &log_text),
            ("SDK", sdk),
            ("BROKEN", broken),
        ];
        let ended = home.run_with(&[&["build", "-p", "m"], more].concat(), "", &variables);
        (ended, std::fs::read_to_string(&log).unwrap_or_default())
    };
    let (ended, calls) = build("8", &[], "");
    ended.ok();
    assert_eq!(
        calls,
        "aot= --version\naot= workload list\naot= workload install wasi-experimental\n\
         aot= restore --force -p:TargetFrameworks=net8.0\naot= publish -c Release -f net8.0 -v quiet\n"
    );
    assert!(!home.path("m/obj/project.assets.json").exists());
    let (ended, calls) = build("8", &["--native-aot", "--debug"], "");
    ended.ok();
    assert_eq!(
        calls,
        "aot= --version\naot=1 restore --force -p:TargetFrameworks=net8.0\naot=1 publish -c Debug -f net8.0 -v quiet\n"
    );
    let (ended, calls) = build("10", &["--dotnet-version", "10"], "");
    ended.ok();
    assert_eq!(
        calls,
        "aot= --version\naot=1 publish -c Release -f net10.0 -v quiet\n"
    );
    home.write("global.json", "{}");
    build("10", &[], "").0.ok();
    for (sdk, more, broken, code, part) in [
        ("9", &[][..], "", "[LC0611]", "not 9"),
        (
            "9",
            &["--dotnet-version", "8"][..],
            "",
            "[LC0611]",
            "the active SDK is 9.0.100",
        ),
        ("10", &["--debug"][..], "yes", "[LC0613]", "StdbModule.wasm"),
    ] {
        let (failed, _) = build(sdk, more, broken);
        assert!(
            failed.status == 1 && failed.stderr.contains(code) && failed.stderr.contains(part),
            "{failed:#?}"
        );
    }
    std::fs::create_dir(home.path("m/bin~")).expect("made");
    let (failed, _) = build("10", &[], "");
    assert!(
        failed.stderr.contains("both `bin` and `bin~`"),
        "{failed:#?}"
    );
    let nowhere = home.run_with(&["build", "-p", "m"], "", &[("PATH", "/nowhere")]);
    assert!(nowhere.stderr.contains("[LC0611]"), "{nowhere:#?}");
}

#[test]
fn csharp_goes_to_its_own_place_and_namespace() {
    let home = Home::new();
    home.write("definition.json", DEFINITION);
    home.write("client.csproj", "");
    home.run(&["generate", "--module-def", "definition.json"])
        .ok();
    let root = home.path("module_bindings/SpacetimeDBClient.g.cs");
    let text = std::fs::read_to_string(&root).expect("written");
    assert!(text.contains("namespace SpacetimeDB.Types\n"), "{text}");
    home.write(
        "module_bindings/Tables/Old.g.cs",
        "// THIS FILE IS AUTOMATICALLY GENERATED BY SPACETIMEDB. x\n",
    );
    let definition = ["generate", "--module-def", "definition.json", "-y"];
    home.run(&[&definition[..], &["--namespace", "My.Game"]].concat())
        .ok();
    let text = std::fs::read_to_string(&root).expect("written");
    assert!(text.contains("namespace My.Game\n"), "{text}");
    assert!(!home.path("module_bindings/Tables/Old.g.cs").exists());
    let wrong = home.run(&[&definition[..], &["--namespace", "1.x"]].concat());
    assert!(
        wrong.status == 1 && wrong.stderr.contains("[LC0634]"),
        "{wrong:#?}"
    );
}

#[test]
fn generate_says_what_is_wrong() {
    let home = Home::new();
    home.write("bad.json", "{}");
    for (args, part) in [
        (
            &["generate", "--module-def", "bad.json", "-l", "ts"][..],
            "[LC0633]",
        ),
        (
            &["generate", "-b", "missing.wasm", "-l", "rust"],
            "[LC0619]",
        ),
        (&["generate", "-b", "bad.json", "-l", "rust"], "[LC0633]"),
        (&["generate"], "[LC0634]"),
        (&["generate", "-l", "ts"], "[LC0610]"),
        (
            &["generate", "-l", "unreal", "--module-def", "bad.json"],
            "[LC0601]",
        ),
    ] {
        let failed = home.run(args);
        assert!(
            failed.status == 1 && failed.stderr.contains(part),
            "{args:?}: {failed:#?}"
        );
    }
    let mixed = home.run(&[
        "generate",
        "-l",
        "ts",
        "--namespace",
        "x",
        "--module-def",
        "bad.json",
    ]);
    assert_eq!(mixed.status, 2, "{mixed:#?}");
}

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
    assert!(made.stdout.contains("spacetime dev"), "{made:#?}");
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
        (&package["name"], &package["dependencies"]["spacetimedb"]),
        (&"my-app".into(), &"2.10.*".into())
    );
    assert!(
        read("src/token.ts").contains(&database) && read(".gitignore").contains("node_modules")
    );
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
            package.contains("\"spacetimedb\": \"npm:lightcone@0.1.0\""),
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
                "--non-interactive",
            ],
            1,
            "[LC0601]",
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
        made.stdout.contains("Project name (my-spacetime-app)") && made.stdout.contains("./shop"),
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
    // The directory of the file contradicts nothing; but it does not say where the module is, and nobody can be asked.
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
            asked.stdout.contains("  1  shop\n  2  c2bb\n")
                && asked
                    .stdout
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
    for absent in ["native-aot", "dotnet"] {
        assert!(!help.contains(absent), "{help}");
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
    assert!(made.stdout.contains("spacetime publish"), "{made:#?}");
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

#[cfg(unix)]
#[test]
fn what_is_probably_not_meant_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    write_module(&home, MODULE);
    // What the bundle would say of itself if it had the real package in it.
    let definition = r#"{"V10":{"sections":[
        {"Typespace":{"types":[{"Product":{"elements":[{"name":{"some":"id"},"algebraic_type":{"U32":[]}}]}}]}},
        {"Tables":[{"source_name":"person","product_type_ref":0,"primary_key":[],"indexes":[],"constraints":[],"sequences":[],
            "table_type":{"User":[]},"table_access":{"Public":[]},"default_values":[],"is_event":false}]}
    ]}}"#;
    let extractor = home.path("extractor");
    let build = |script: &str| {
        home.write("extractor", script);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&extractor, executable).expect("made executable");
        let variable = [(
            "SPACETIMEDB_SCHEMA_EXTRACTOR",
            extractor.to_str().expect("UTF-8"),
        )];
        home.run_with(&["build", "-p", "m"], "", &variable).ok()
    };
    let built = build(&format!("#!/bin/sh\ncat <<'END'\n{definition}\nEND\n"));
    assert!(
        built
            .stderr
            .contains("\nwarning: the module has tables and no function"),
        "{built:#?}"
    );
    assert!(built.stdout.ends_with("Build finished successfully.\n"));
    let silent = build("#!/bin/sh\nexit 1\n");
    assert_eq!(silent.stderr, "");
}

#[test]
fn an_environment_without_files_is_told() {
    let home = Home::new();
    home.write(
        "spacetime.json",
        "{ database: 'shop', wasm_file: 'no.wasm' }",
    );
    let typo = home.run(&[
        "publish",
        "--env",
        "prd",
        "--anonymous",
        "-s",
        "http://127.0.0.1:9",
    ]);
    assert!(
        typo.stderr
            .contains("neither spacetime.prd.json nor spacetime.prd.local.json"),
        "{typo:#?}"
    );
    home.write("spacetime.prd.json", "{}");
    let found = home.run(&[
        "publish",
        "--env",
        "prd",
        "--anonymous",
        "-s",
        "http://127.0.0.1:9",
    ]);
    assert!(!found.stderr.contains("neither"), "{found:#?}");
}
