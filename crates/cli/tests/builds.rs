//! `build`: TypeScript, C++ and C#, against no server at all.

use crate::common::Home;

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
        built.stderr.contains("Could not find TypeScript")
            && built.stdout == "Build finished successfully.\n",
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
    assert!(
        failed.stdout.is_empty() && failed.stderr.contains("error --noEmit"),
        "{failed:#?}"
    );
    assert!(!home.path("m/dist/bundle.js").exists());
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

/// Stand-ins for CMake and Emscripten: they write down how they are called, and the build makes an empty module.
#[cfg(unix)]
const EMSCRIPTEN: &str = r#"#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
case $1 in
--build) printf '\0asm\1\0\0\0' >build/lib.wasm ;;
cmake) mkdir -p build ;;
esac
"#;

#[cfg(unix)]
#[test]
fn cpp_without_a_toolchain_is_built_by_emscripten() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    for tool in ["cmake", "emcc", "emcmake"] {
        home.write(&format!("tools/{tool}"), EMSCRIPTEN);
        let executable = std::fs::Permissions::from_mode(0o755);
        let tool = home.path(&format!("tools/{tool}"));
        std::fs::set_permissions(tool, executable).expect("made executable");
    }
    home.write("m/CMakeLists.txt", "");
    let path = format!("{}:/usr/bin:/bin", home.path("tools").display());
    let log = home.path("log");
    for (more, kind) in [(&[][..], "Release"), (&["--debug"][..], "Debug")] {
        let _ = std::fs::remove_file(&log);
        let log_text = log.display().to_string();
        let variables = [("PATH", &path[..]), ("LOG", &log_text)];
        let build = [&["build", "-p", "m"], more].concat();
        home.run_with(&build, "", &variables).ok();
        assert_eq!(
            std::fs::read_to_string(&log).expect("they were called"),
            format!(
                "emcmake cmake -S . -B build -DCMAKE_BUILD_TYPE={kind}\n\
                 cmake --build build --config {kind} --parallel\n"
            )
        );
    }
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
    assert_eq!(built.stdout, "Build finished successfully.\n");
    let silent = build("#!/bin/sh\nexit 1\n");
    assert!(!silent.stderr.contains("warning"), "{silent:#?}");
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
