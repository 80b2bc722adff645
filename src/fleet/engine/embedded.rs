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

use super::version::check_version;
use crate::does_not_add_up::DoesNotAddUp;
use crate::memory;
use crate::rows::Columns;

/// The embedded engine with the tables of a folder.
pub struct Embedded {
    context: SessionContext,
    memory: MemoryLimit,
    folder: PathBuf,
}

impl Embedded {
    /// Opens a folder. What does not fit into memory goes to the folder for temporary files.
    ///
    /// # Errors
    /// If it has no such tables, or those of another version.
    pub async fn open(folder: &Path, memory: Option<MemoryLimit>) -> anyhow::Result<Self> {
        for table in TABLES {
            check_folder(folder, table.name)?;
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
            registered.map_err(|error| why(folder, error))?;
        }
        Ok(Self { context, memory, folder: folder.to_owned() })
    }

    pub async fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        let answer = async { self.context.sql(sql).await?.collect().await };
        let batches = answer.await.map_err(|error| match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => anyhow::Error::from(error).context(format!(
                "{} of memory are too little for this question: give it more by --memory, or ask of less, as by --since",
                self.memory
            )),
            _ => why(&self.folder, error),
        })?;
        Columns::of(&batches)
    }
}

/// What is wrong with a folder of which this is said.
fn why(folder: &Path, error: DataFusionError) -> anyhow::Error {
    if let Err(damaged) = check_files(folder) {
        return damaged;
    }
    let error = anyhow::Error::from(error);
    let is_gone = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
    };
    // All is well with what is there now: an agent has removed a window that was there when the folder was listed.
    match error.chain().any(is_gone) {
        true => {
            DoesNotAddUp(format!("a window of {} was removed while it was read: {error}", folder.display()))
                .into()
        }
        false => error,
    }
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
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
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

fn check_folder(folder: &Path, table: &str) -> anyhow::Result<()> {
    let path = folder.join(table);
    if folder.is_file() {
        bail!(
            "{0} is a file, and tables are in a folder: `eprof report {0}` reads a recording, `eprof export --format parquet -o \
             DIR {0}` makes tables of it",
            folder.display()
        );
    }
    ensure!(folder.exists(), "there is no folder {}", folder.display());
    let how = || {
        format!(
            "{} has no table {table}: make the tables there with `eprof export RECORDINGS --format parquet -o {}`",
            folder.display(),
            folder.display()
        )
    };
    ensure!(files(&path).with_context(how)?.next().is_some(), how());
    Ok(())
}

fn files(folder: &Path) -> anyhow::Result<impl Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")))
}

/// Every export says of which version its tables are.
fn check_versions(folder: &Path) -> anyhow::Result<()> {
    for path in files(&folder.join("balance"))? {
        let cannot = || format!("cannot read {}", path.display());
        let file = match File::open(&path) {
            // An agent has removed the window since its folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.with_context(cannot)?,
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
