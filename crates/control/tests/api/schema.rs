//! The database: its frozen schema, and the rules that every statement keeps.

use std::path::{Path, PathBuf};

use dayfly_control::store::Store;
use sqlx::sqlite::SqlitePoolOptions;

pub(crate) fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[tokio::test]
async fn schema_dump_is_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("control.db");
    Store::open(&file).await.unwrap().close().await;
    let url = format!("sqlite://{}", file.display());
    let pool = SqlitePoolOptions::new().connect(&url).await.unwrap();
    let statements: Vec<(String,)> = sqlx::query_as(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '_sqlx%' \
         ORDER BY tbl_name, type DESC, name",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let current: String = statements.into_iter().map(|(sql,)| sql + ";\n\n").collect();
    let path = crate_path("schema.sql");
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        frozen == current,
        "schema.sql is out of date; run with DAYFLY_BLESS=1"
    );
}

/// The string literals of a source file that are statements.
fn statements(source: &str) -> Vec<String> {
    let verbs = ["SELECT ", "INSERT ", "UPDATE ", "DELETE "];
    source
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|text| {
            text.split_whitespace()
                .filter(|word| *word != "\\")
                .collect::<Vec<_>>()
                .join(" ")
        })
        .filter(|text| verbs.iter().any(|verb| text.starts_with(verb)))
        .collect()
}

#[test]
fn every_statement_on_a_tenant_s_table_names_the_project() {
    let mut checked = 0;
    for file in std::fs::read_dir(crate_path("src/store")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap();
        let of_nobody = [
            "across_projects.rs",
            "all_projects.rs",
            "copy.rs",
            "export.rs",
            "identity.rs",
            "projects.rs",
            "sampling.rs",
            "write_check.rs",
            "writer.rs",
        ];
        if of_nobody.iter().any(|file| name == *file) {
            continue;
        }
        for statement in statements(&std::fs::read_to_string(&path).unwrap()) {
            let scoped = match statement.split_once(" WHERE ") {
                _ if statement.starts_with("INSERT ") => statement.contains("project_id,"),
                Some((_, condition)) => condition.contains("project_id = $"),
                None => false,
            };
            assert!(scoped, "{}: {statement}", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} statements were found");
}

#[test]
fn no_statement_outside_the_store() {
    let mut folders = vec![crate_path("src")];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                if path.file_name().unwrap() != "store" {
                    folders.push(path);
                }
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            assert!(statements(&source).is_empty(), "{}", path.display());
            assert!(!source.contains("sqlx::query"), "{}", path.display());
        }
    }
}

/// The code of a source file without its tests and without white space.
fn code(path: &Path) -> String {
    let source = std::fs::read_to_string(path).unwrap();
    let code = source.split("#[cfg(test)]").next().unwrap();
    code.split_whitespace().collect()
}

#[test]
fn nobody_writes_or_begins_a_transaction_around_the_writer() {
    // How a transaction is begun, and how a statement is run on a connection by itself.
    let around = [
        "BEGIN",
        "SAVEPOINT",
        "Transaction",
        ".begin()",
        "begin_with",
        ".acquire(",
        ".detach(",
        "PoolConnection",
        "SqliteConnection",
        "raw_sql",
        ".execute(&",
        ".execute_many(",
    ];
    let (mut folders, mut begun) = (vec![crate_path("src")], 0);
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let code = code(&path);
            if !path.starts_with(crate_path("src/store")) {
                assert!(!code.contains("sqlx"), "sqlx in {}", path.display());
                continue;
            }
            if path.ends_with("store/copy.rs") {
                // Looks at whole files, on connections of its own that cannot write, but for the one to
                // a copy that it has just made.
                let count = |word| code.matches(word).count();
                let opened = count("SqliteConnectOptions::new()");
                assert!(opened > 1 && opened == count(".read_only(true)") + 1);
                assert_eq!(count("SqliteConnectOptions::new().filename(copy)"), 1);
                continue;
            }
            begun += code.matches("self.writer.begin").count();
            // The positive control: there they are.
            let is_writer = path.ends_with("store/writer.rs");
            for word in ["BEGIN", ".acquire(", ".execute(&"] {
                assert_eq!(
                    code.contains(word),
                    is_writer,
                    "{word} in {}",
                    path.display()
                );
            }
            // Migrations run before there is a writer, on a connection of their own.
            let may = is_writer || path.ends_with("store/connect.rs");
            for word in around.iter().filter(|_| !may) {
                assert!(!code.contains(word), "{word} in {}", path.display());
            }
        }
    }
    assert!(begun >= 15, "only {begun} transactions were found");
}

#[test]
fn statements_are_ones_that_postgresql_also_runs() {
    let only_sqlite = [
        "PRAGMA",
        "AUTOINCREMENT",
        "DATETIME(",
        "STRFTIME",
        "INSERT OR ",
        "REPLACE INTO",
        "GLOB ",
        "IFNULL(",
        "ROWID",
        "?1",
        "INTEGER",
        "JSON(",
        "JSON_",
    ];
    let mut sources = Vec::new();
    for file in std::fs::read_dir(crate_path("migrations")).unwrap() {
        let path = file.unwrap().path();
        // It converts rows, of which a database of PostgreSQL has none.
        if !path.ends_with("0011_documents.sql") {
            sources.push(std::fs::read_to_string(path).unwrap());
        }
    }
    assert!(sources.len() >= 3);
    for file in std::fs::read_dir(crate_path("src/store")).unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        sources.extend(statements(&source));
    }
    for text in sources {
        let upper = text.to_uppercase();
        for word in only_sqlite {
            assert!(!upper.contains(word), "{word} in {text}");
        }
    }
}
