//! DataFusion, in this process, over the files of a folder.

use std::error::Error;
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use eprof::analyze::MemoryLimit;
use eprof::report::store::schema::{TABLES, VERSION_KEY};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::folder::{self, cannot_read, files};
use super::version::check_version;
use crate::does_not_add_up::WindowsRemoved;
use crate::memory;
use crate::rows::Columns;

/// The embedded engine with the tables of a folder.
pub struct Embedded {
    context: SessionContext,
    memory: MemoryLimit,
    folder: PathBuf,
    /// The files of the tables when they were listed.
    listed: Vec<PathBuf>,
}

impl Embedded {
    /// Opens a folder. What does not fit into memory goes to the folder for temporary files.
    ///
    /// # Errors
    /// If it has no such tables, or those of another version.
    pub async fn open(folder: &Path, memory: Option<MemoryLimit>) -> anyhow::Result<Self> {
        folder::check(folder)?;
        let mut listed = Vec::new();
        for table in TABLES {
            listed.extend(files(&folder.join(table.name))?);
        }
        check_versions(folder)?;
        let config = SessionConfig::new()
            .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
            .set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let memory = memory.unwrap_or_else(memory::usual);
        let pool = Arc::new(FairSpillPool::new(memory.bytes()));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        for table in TABLES {
            let address = address(&folder.join(table.name))?;
            let registered =
                context.register_parquet(table.name, address, ParquetReadOptions::default()).await;
            registered.map_err(|error| why(folder, &listed, error))?;
        }
        Ok(Self { context, memory, folder: folder.to_owned(), listed })
    }

    pub async fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        let answer = async { self.context.sql(sql).await?.collect().await };
        let batches = answer.await.map_err(|error| match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => anyhow::Error::from(error).context(format!(
                "{} of memory are too little for this question: give it more by --memory, or ask of less, as by --since",
                self.memory
            )),
            _ => why(&self.folder, &self.listed, error),
        })?;
        Columns::of(&batches)
    }
}

/// What is wrong with a folder of which this is said, of whose tables these files were listed.
fn why(folder: &Path, listed: &[PathBuf], error: DataFusionError) -> anyhow::Error {
    if let Err(damaged) = check_files(folder) {
        return damaged;
    }
    // Not of a file, but of what was asked.
    let is_of_question = matches!(
        error.find_root(),
        DataFusionError::SchemaError(..) | DataFusionError::Plan(_) | DataFusionError::SQL(..)
    );
    let error = anyhow::Error::from(error);
    let is_of_missing = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    };
    // Some of the engine's errors are but texts: what is gone tells more surely.
    let is_gone = |path: &PathBuf| {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    // All is well with what is there now: an agent has removed a window that was there when the folder was listed.
    if error.chain().any(is_of_missing) || (!is_of_question && listed.iter().any(is_gone)) {
        return WindowsRemoved(folder.to_owned()).into();
    }
    // Its causes say the same again, each over several lines.
    anyhow!(error.to_string().replace('\n', " "))
}

/// Opens all files of the tables.
///
/// # Errors
/// Which of them is damaged, or no table of eprof.
pub fn check_files(folder: &Path) -> anyhow::Result<()> {
    for table in TABLES {
        for path in files(&folder.join(table.name))? {
            match File::open(&path).map(SerializedFileReader::new) {
                // An agent has removed the window.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(cannot_read(&path, error)),
                Ok(Err(error)) => return Err(damaged(&path, folder, error)),
                Ok(Ok(file)) => {
                    let metadata = file.metadata().file_metadata().key_value_metadata();
                    let is_ours = metadata.into_iter().flatten().any(|entry| entry.key == VERSION_KEY);
                    ensure!(
                        is_ours,
                        "{} is no table of eprof: move it to another folder than {}",
                        path.display(),
                        folder.display()
                    );
                }
            }
        }
    }
    Ok(())
}

fn damaged(path: &Path, folder: &Path, error: impl Display) -> anyhow::Error {
    let name = path.file_name().unwrap_or_default().display();
    anyhow!(
        "{} is damaged ({error}): export its recording again with --force, or remove its files (rm {}/*/{name})",
        path.display(),
        folder.display()
    )
}

/// A folder as an address: as a path, some letters of its name are taken for patterns.
fn address(folder: &Path) -> anyhow::Result<String> {
    let path = fs::canonicalize(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut address = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => address.push(char::from(*byte)),
            _ if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            _ => address += &format!("%{byte:02X}"),
        }
    }
    Ok(address + "/")
}

/// Every export says of which version its tables are.
fn check_versions(folder: &Path) -> anyhow::Result<()> {
    for path in files(&folder.join("balance"))? {
        let file = match File::open(&path) {
            // An agent has removed the window since its folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(|error| cannot_read(&path, error))?,
        };
        let reader = SerializedFileReader::new(file).map_err(|error| damaged(&path, folder, error))?;
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let found =
            metadata.and_then(|pairs| pairs.iter().find(|pair| pair.key == VERSION_KEY)?.value.as_deref());
        match found {
            Some(version) => check_version(version, &path.display().to_string())?,
            None => bail!("{} is not of eprof: no version of its tables is in it", path.display()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::collect;

    use super::*;

    /// Tables of two windows each, as the engine itself writes them. Of a column with one value it would not read the file.
    async fn tables(folder: &Path) {
        let context = SessionContext::new();
        for table in TABLES {
            for window in ["old", "new"] {
                let path = folder.join(table.name).join(window).with_extension("parquet");
                fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                let sql = format!(
                    "COPY (SELECT n FROM (VALUES (1), (2)) AS v(n)) TO '{}' STORED AS PARQUET OPTIONS ('format.metadata::{VERSION_KEY}' '1')",
                    path.display()
                );
                context.sql(&sql).await.expect("planned").collect().await.expect("written");
            }
        }
    }

    fn block_on(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread().build().expect("a runtime").block_on(test);
    }

    #[test]
    fn files_that_are_removed_between_listing_and_reading_are_known() {
        block_on(async {
            let folder = tempfile::tempdir().expect("a folder");
            tables(folder.path()).await;
            let engine = Embedded::open(folder.path(), None).await.expect("tables");
            let counted = engine.ask("SELECT SUM(n) AS n FROM functions").await.expect("an answer");
            assert_eq!({ counted }.ints().expect("a number"), [6]);
            // The plan lists the files, and its answer reads them.
            let listed = engine.context.sql("SELECT n FROM functions").await.expect("right");
            let plan = listed.create_physical_plan().await.expect("a plan");
            fs::remove_file(folder.path().join("functions/old.parquet")).expect("removed");
            let error = collect(plan, engine.context.task_ctx()).await.expect_err("it is gone");
            let said = why(folder.path(), &engine.listed, error);
            assert!(said.is::<WindowsRemoved>(), "{said:#}");
            // Opened again, what is there is listed again.
            let engine = Embedded::open(folder.path(), None).await.expect("tables");
            let counted = engine.ask("SELECT SUM(n) AS n FROM functions").await.expect("an answer");
            assert_eq!({ counted }.ints().expect("a number"), [3]);
        });
    }

    #[test]
    fn errors_that_are_but_texts_are_known_by_what_is_gone() {
        block_on(async {
            let folder = tempfile::tempdir().expect("a folder");
            tables(folder.path()).await;
            let path = folder.path().join("samples/old.parquet");
            let said = || {
                let error = DataFusionError::Execution("Object at location x not found".to_owned());
                why(folder.path(), std::slice::from_ref(&path), error)
            };
            assert!(!said().is::<WindowsRemoved>(), "all files are there");
            fs::remove_file(&path).expect("removed");
            assert!(said().is::<WindowsRemoved>(), "{:#}", said());
            let of_question = DataFusionError::Plan("no such column".to_owned());
            assert_eq!(
                why(folder.path(), std::slice::from_ref(&path), of_question).to_string(),
                "Error during planning: no such column"
            );
            fs::write(&path, "PAR1").expect("written");
            assert!(format!("{:#}", said()).contains("is damaged"), "{:#}", said());
        });
    }
}
