//! DataFusion, in this process, over the files of a folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use eprof::analyze::MemoryLimit;
use eprof::report::store::schema::{TABLES, VERSION_KEY};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::version::check_version;
use crate::memory;
use crate::rows::Columns;

/// The embedded engine with the tables of a folder.
pub struct Embedded {
    context: SessionContext,
    memory: MemoryLimit,
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
        check_versions(&folder.join("balance"))?;
        let config = SessionConfig::new()
            .set_bool("datafusion.execution.parquet.schema_force_view_types", false)
            .set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let memory = memory.unwrap_or_else(memory::usual);
        let pool = Arc::new(FairSpillPool::new(memory.bytes()));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        for table in TABLES {
            let path = folder.join(table.name);
            let path = path.to_str().with_context(|| format!("{} is no UTF-8", path.display()))?;
            context.register_parquet(table.name, format!("{path}/"), ParquetReadOptions::default()).await?;
        }
        Ok(Self { context, memory })
    }

    pub async fn ask(&self, sql: &str) -> anyhow::Result<Columns> {
        let answer = async { self.context.sql(sql).await?.collect().await };
        let batches = answer.await.map_err(|error| match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => anyhow::Error::from(error).context(format!(
                "{} of memory are too little for this question: give it more by --memory, or ask of less, as by --since",
                self.memory
            )),
            _ => error.into(),
        })?;
        Columns::of(&batches)
    }
}

fn check_folder(folder: &Path, table: &str) -> anyhow::Result<()> {
    let path = folder.join(table);
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
    for path in files(folder)? {
        let cannot = || format!("cannot read {}", path.display());
        let file = match File::open(&path) {
            // An agent has removed the window since its folder was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            file => file.with_context(cannot)?,
        };
        let reader = SerializedFileReader::new(file).with_context(cannot)?;
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
