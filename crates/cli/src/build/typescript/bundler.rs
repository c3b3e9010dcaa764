//! The bundler: Rolldown, with the options of 04 §12.

use std::path::Path;
use std::sync::Arc;

use rolldown::{
    BundlerOptions, BundlerTransformOptions, CodeSplittingMode, CommentsOptions, Either,
    IsExternal, LegalComments, OutputExports, OutputFormat, Platform, RawMinifyOptions,
    ResolveOptions, SourceMapType, TsConfig, TypeScriptOptions,
};

use super::imports::Bundled;
use crate::error::{FileResult as _, Result};

/// Bundles `src/index.ts`.
pub fn bundle(directory: &Path, debug: bool) -> Result<Bundled> {
    let options = options(directory, debug)?;
    // The bundler wants threads of its own, and callers may be inside another runtime.
    let outcome = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .build()
                    .map_err(|e| e.to_string())?;
                runtime.block_on(run(options))
            })
            .join()
            .unwrap_or_else(|_| Err("the bundler panicked; please report this".into()))
    });
    outcome.map_err(|why| coded!("LC0635", "the module cannot be bundled\n{}", why.trim_end()))
}

async fn run(options: BundlerOptions) -> std::result::Result<Bundled, String> {
    let mut bundler = rolldown::Bundler::new(options).map_err(|e| told(&e.into_vec()))?;
    let output = bundler.generate().await.map_err(|e| told(&e.into_vec()))?;
    let chunk = output.assets.iter().find_map(|asset| match asset {
        rolldown_common::Output::Chunk(chunk) => Some(chunk.clone()),
        rolldown_common::Output::Asset(_) => None,
    });
    // Unresolved imports are warnings to the bundler: it would leave them to the host, which has none of them.
    let mut unresolved = output.warnings;
    unresolved.retain(|warning| warning.kind().to_string() == "UNRESOLVED_IMPORT");
    if !unresolved.is_empty() {
        return Err(told(&unresolved));
    }
    let chunk = chunk.ok_or("the bundler wrote nothing")?;
    Ok(Bundled {
        code: chunk.code.clone(),
        imports: chunk.imports.iter().map(ToString::to_string).collect(),
        exports: chunk.exports.iter().map(ToString::to_string).collect(),
    })
}

/// The bundler's messages with the places they are about.
fn told(diagnostics: &[rolldown_error::BuildDiagnostic]) -> String {
    use std::io::IsTerminal;
    let color = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let mut text = String::new();
    for diagnostic in diagnostics {
        let said = diagnostic.to_diagnostic().convert_to_string(color);
        text.push_str(said.trim_end());
        text.push('\n');
        if diagnostic.kind().to_string() == "UNRESOLVED_IMPORT" {
            text.push_str("Module not found. Are the dependencies installed? Run `npm install` (or pnpm, yarn, bun) in the module's directory.\n");
        }
    }
    text
}

fn options(directory: &Path, debug: bool) -> Result<BundlerOptions> {
    let directory = std::path::absolute(directory).or_cannot("find", directory)?;
    let own = |texts: &[&str]| Some(texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
    let environment = match debug {
        true => "\"development\"",
        false => "\"production\"",
    };
    let tsconfig = directory.join("tsconfig.json");
    Ok(BundlerOptions {
        input: Some(vec!["./src/index.ts".to_owned().into()]),
        tsconfig: Some(match tsconfig.is_file() {
            true => TsConfig::Manual(tsconfig),
            false => TsConfig::Auto(false),
        }),
        cwd: Some(directory),
        dir: Some("dist".into()),
        entry_filenames: Some("bundle.js".to_owned().into()),
        external: Some(IsExternal::Fn(Some(Arc::new(
            |specifier, _importer, _resolved| {
                let is_host = specifier.starts_with("spacetime:sys");
                Box::pin(async move { Ok(is_host) })
            },
        )))),
        platform: Some(Platform::Browser),
        format: Some(OutputFormat::Esm),
        exports: Some(OutputExports::Named),
        sourcemap: Some(SourceMapType::Inline),
        sourcemap_debug_ids: Some(true),
        code_splitting: Some(CodeSplittingMode::Bool(false)),
        minify: Some(RawMinifyOptions::Bool(false)),
        legal_comments: Some(LegalComments::None),
        comments: Some(CommentsOptions {
            legal: false,
            annotation: true,
            jsdoc: true,
        }),
        define: Some(
            [("process.env.NODE_ENV".to_owned(), environment.to_owned())]
                .into_iter()
                .collect(),
        ),
        resolve: Some(ResolveOptions {
            condition_names: own(&["production", "import", "default"]),
            main_fields: own(&["exports", "module", "main"]),
            extensions: own(&[".ts", ".tsx", ".mjs", ".js", ".cjs", ".json"]),
            symlinks: Some(true),
            ..ResolveOptions::default()
        }),
        transform: Some(BundlerTransformOptions {
            // Everything newer than this edition is `using`, which not every engine of ours has; V8 loses nothing by it.
            target: Some(Either::Left("es2025".to_owned())),
            typescript: Some(TypeScriptOptions {
                allow_namespaces: Some(false),
                ..TypeScriptOptions::default()
            }),
            ..BundlerTransformOptions::default()
        }),
        ..BundlerOptions::default()
    })
}
