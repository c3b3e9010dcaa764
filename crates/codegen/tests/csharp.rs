//! C# bindings are compiled against the surface of the SDK that they use (`csharp/Sdk.cs`). Mono's compiler knows C# 7, so
//! what is newer is taken out first: nullable references and records. Without Mono this says so, and tests nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use lightcone_codegen::{generate, Language, Options};
use lightcone_schema::{ModuleDef, RawModuleDef};

/// What `scripts/csharp-compile.sh` ends with where there is no compiler.
const SKIPPED: i32 = 77;
const SDK: &str = include_str!("csharp/Sdk.cs");
/// What applications do with bindings, so that it is checked, too.
const APPLICATION: &str = r#"
using SpacetimeDB.Types;

public static class Application
{
    public static void Run()
    {
        var connection = new DbConnection();
        connection.Reducers.OnAddPlain += (ctx, left, right) => System.Console.WriteLine(left + right.Length);
        connection.Reducers.AddPlain(1, "one");
        connection.Procedures.AddNumbers(1, 2, (ctx, result) => System.Console.WriteLine(result.Value.Total));
        connection.SubscriptionBuilder()
            .OnApplied(ctx => System.Console.WriteLine(ctx.Db.Indexed.Id.Find(1).Name))
            .AddQuery(query => query.From.Indexed())
            .Subscribe();
        foreach (var row in connection.Db.Indexed.ByGroupRankName.Filter((1, 2, "x")))
        {
            System.Console.WriteLine(row.Code);
        }
    }
}
"#;

fn compile(language: Language) -> Option<Result<(), String>> {
    let definition = include_str!("golden/coverage.json");
    let def = ModuleDef::validate(RawModuleDef::from_json(definition).expect("JSON"));
    let options = Options {
        language,
        include_private: true,
        cli_version: "2.10.1".into(),
        commit: "0000000".into(),
    };
    let files = generate(&def.expect("valid"), &options)
        .expect("bindings")
        .files;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    let values = value_types(files.iter().map(|file| &file.text[..]));
    for file in &files {
        write(&file.path, &downgraded(&file.text, &values));
    }
    write("Sdk.cs", SDK);
    if matches!(&options.language, Language::Csharp { namespace } if namespace == "SpacetimeDB.Types")
    {
        write("Application.cs", APPLICATION);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("scripts/csharp-compile.sh"))
        .arg(directory.path())
        .output()
        .expect("scripts/csharp-compile.sh runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(SKIPPED) => {
            eprintln!("{said}");
            None
        }
        Some(0) => Some(Ok(())),
        _ => Some(Err(said)),
    }
}

/// Types that `?` makes nullable also in C# 7: those of the language, of the SDK, and enums.
fn value_types<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let known = "bool sbyte byte short ushort int uint long ulong float double Unit Identity ConnectionId Timestamp TimeDuration Uuid I128 U128 I256 U256";
    let mut values: BTreeSet<String> = known.split(' ').map(str::to_owned).collect();
    for text in texts {
        let enums = text.split("public enum ").skip(1);
        values.extend(enums.filter_map(|rest| Some(rest.split_whitespace().next()?.to_owned())));
    }
    values
}

/// The text in C# 7.
fn downgraded(text: &str, value_types: &BTreeSet<String>) -> String {
    let text = text
        .replace("#nullable enable\n", "")
        .replace("null!", "null")
        .replace("Error!)", "Error)")
        .replace("public partial record ", "public partial class ")
        // The interface of a record, which Mono's compiler cannot write, becomes a field of it.
        .replace(" : global::SpacetimeDB.TaggedEnum<(\n", " { public (\n")
        .replace("    )>;\n", "    ) Variants; }\n")
        // Mono's compiler does not switch over types.
        .replace("switch (reducer)", "")
        .replace("default:", "")
        .replace("switch (ctx.Event.Status)", "")
        .replace(
            "case Status.Failed(var reason):",
            "if (ctx.Event.Status is Status.Failed) { var reason = ((Status.Failed)ctx.Event.Status).Failed_;",
        )
        .replace(
            "case Status.OutOfEnergy(var _):",
            "if (ctx.Event.Status is Status.OutOfEnergy) {",
        )
        .replace("break;", "}");
    let text: String = text.lines().map(|line| without_case(line) + "\n").collect();
    let mut out = String::new();
    for letter in text.chars() {
        let is_type = out.ends_with(|last: char| last.is_alphanumeric() || last == '>');
        if letter == '?' && is_type {
            let word = out
                .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            if !word.is_some_and(|word| value_types.contains(word)) {
                continue;
            }
        }
        out.push(letter);
    }
    out
}

/// `case Reducer.X args: return F(args);` as a condition.
fn without_case(line: &str) -> String {
    let case = line.trim_start().strip_prefix("case Reducer.");
    match case.and_then(|rest| rest.split_once(" args: ")) {
        Some((name, statement)) => {
            let statement = statement.replace("args)", &format!("(Reducer.{name})reducer)"));
            format!("if (reducer is Reducer.{name}) {{ {statement} }}")
        }
        None => line.to_owned(),
    }
}

#[test]
fn bindings_of_every_type_compile() {
    for namespace in ["SpacetimeDB.Types", "My.Game"] {
        let language = Language::Csharp {
            namespace: namespace.into(),
        };
        if let Some(Err(said)) = compile(language) {
            panic!("{namespace}: {said}");
        }
    }
}
