//! The folder of stored models: one file per kind of CPU.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::stored::{StoredModel, StoredModelError};

/// Why a model could not be read from or written to its folder.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The file system says no.
    #[error("cannot {verb} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is a file, and it cannot be used.
    #[error("{path}: {source}", path = .path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: StoredModelError,
    },
    /// A number that JSON cannot hold.
    #[error("the model cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A folder of stored models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolder(PathBuf);

impl ModelFolder {
    /// This folder; it need not exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The user's: `$XDG_CONFIG_HOME/eprof/models`, or `.config/eprof/models` in the home folder. `None`
    /// without either.
    pub fn of_user(xdg_config_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<Self> {
        let set = |value: Option<&OsStr>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set(xdg_config_home).filter(|path| path.is_absolute());
        let config = config.or_else(|| Some(set(home)?.join(".config")))?;
        Some(Self(config.join("eprof/models")))
    }

    /// The machine's: what root calibrates, and all users may read.
    pub fn of_machine() -> Self {
        Self(PathBuf::from("/var/lib/eprof/models"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file for a kind of CPU, whether it exists or not.
    pub fn file_for(&self, cpu_identity: &str) -> PathBuf {
        self.0.join(StoredModel::file_name(cpu_identity))
    }

    /// The model for a kind of CPU; `None` if there is none.
    ///
    /// # Errors
    /// If there is one that cannot be read, or that says it is for another CPU.
    pub fn load(&self, cpu_identity: &str) -> Result<Option<StoredModel>, FolderError> {
        let path = self.file_for(cpu_identity);
        let stored = match read(&path) {
            Err(FolderError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            other => other?,
        };
        match stored.check(cpu_identity, []) {
            Ok(()) => Ok(Some(stored)),
            Err(source) => Err(FolderError::Model { path, source }),
        }
    }

    /// The model for a kind of CPU, if there is one for this user: a folder that is closed to it is somebody else's, as
    /// the home folder is that a program under `sudo -u` is told of.
    ///
    /// # Errors
    /// If there is one that cannot be read, or that says it is for another CPU.
    pub fn find(&self, cpu_identity: &str) -> Result<Option<StoredModel>, FolderError> {
        let seen = fs::metadata(self.file_for(cpu_identity));
        if seen.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return Ok(None);
        }
        self.load(cpu_identity)
    }

    /// The folder of this name beside this one: for what else is kept of kinds of CPU.
    pub fn beside(&self, name: &str) -> Self {
        Self(self.0.with_file_name(name))
    }

    /// Writes a model, all or nothing, and returns its file.
    ///
    /// # Errors
    /// If the folder cannot be made or the file not be written.
    pub fn save(&self, stored: &StoredModel) -> Result<PathBuf, FolderError> {
        self.write(&stored.cpu_identity, &stored.to_json()?)
    }

    /// Writes the file for a kind of CPU, all or nothing, and returns it.
    ///
    /// # Errors
    /// If the folder cannot be made or the file not be written.
    pub fn write(&self, cpu_identity: &str, text: &str) -> Result<PathBuf, FolderError> {
        let is_machines = self.0.parent() == Self::of_machine().0.parent();
        let io_error = |verb, path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Io { verb, path, source }
        };
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true);
        if is_machines {
            folders.mode(0o755);
        }
        folders.create(&self.0).map_err(io_error("make folder", &self.0))?;
        let path = self.file_for(cpu_identity);
        let unfinished = path.with_extension("json.new");
        fs::write(&unfinished, text).map_err(io_error("write", &unfinished))?;
        if is_machines {
            // Root's mask may keep new files from others.
            let readable = fs::Permissions::from_mode(0o644);
            fs::set_permissions(&unfinished, readable).map_err(io_error("write", &unfinished))?;
        }
        fs::rename(&unfinished, &path).map_err(io_error("write", &path))?;
        Ok(path)
    }

    /// All models of the folder, by file name; files that are no models come with what is wrong.
    pub fn list(&self) -> Vec<(PathBuf, Result<StoredModel, FolderError>)> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension() == Some(OsStr::new("json")));
        paths.sort();
        paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
    }
}

/// The folders in which a user's recordings look for models, the first first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFolders(Vec<ModelFolder>);

impl ModelFolders {
    /// These folders.
    pub fn new(folders: impl IntoIterator<Item = ModelFolder>) -> Self {
        Self(folders.into_iter().collect())
    }

    /// The user's own, if there is a place for one, and then the machine's.
    pub fn of_user(xdg_config_home: Option<&OsStr>, home: Option<&OsStr>) -> Self {
        Self::new(ModelFolder::of_user(xdg_config_home, home).into_iter().chain([ModelFolder::of_machine()]))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &ModelFolder> {
        self.0.iter()
    }

    /// The first model for a kind of CPU. Folders that are closed to this user are somebody else's.
    ///
    /// # Errors
    /// If there is one that cannot be read, or that says it is for another CPU.
    pub fn find(&self, cpu_identity: &str) -> Result<Option<StoredModel>, FolderError> {
        self.0.iter().find_map(|folder| folder.find(cpu_identity).transpose()).transpose()
    }
}

/// Where a new model is kept: root's in the machine's folder, where all users' recordings find it, unless root names a
/// folder of its own (`$XDG_CONFIG_HOME`); another user's in that user's. `None` if there is no such place.
pub fn folder_for_new(
    is_root: bool,
    xdg_config_home: Option<&OsStr>,
    home: Option<&OsStr>,
) -> Option<ModelFolder> {
    let names_one = xdg_config_home.is_some_and(|path| Path::new(path).is_absolute());
    if is_root && !names_one {
        return Some(ModelFolder::of_machine());
    }
    ModelFolder::of_user(xdg_config_home, home)
}

/// Reads a model file.
///
/// # Errors
/// If it cannot be read or is no model.
pub fn read(path: &Path) -> Result<StoredModel, FolderError> {
    parse(path, fs::read_to_string(path))
}

/// A model by what was read from its file.
///
/// # Errors
/// If it could not be read or is no model.
pub fn parse(path: &Path, text: io::Result<String>) -> Result<StoredModel, FolderError> {
    let text = text.map_err(|source| FolderError::Io { verb: "read", path: path.to_owned(), source })?;
    StoredModel::from_json(&text).map_err(|source| FolderError::Model { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::presets::Preset;
    use crate::power_model::stored::STORED_FORMAT;

    fn stored(cpu_identity: &str) -> StoredModel {
        StoredModel {
            format: STORED_FORMAT,
            eprof_version: "0.1.0".into(),
            cpu_identity: cpu_identity.into(),
            cpu_model: String::new(),
            created_unix: 0,
            model: Preset::Generic.model(),
        }
    }

    #[test]
    fn a_model_is_found_for_its_cpu_only() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = ModelFolder::at(temp.path().join("eprof/models"));
        assert!(folder.load("a-1").expect("no file is no error").is_none());
        let path = folder.save(&stored("a-1")).expect("a writable folder");
        assert_eq!(path, folder.file_for("a-1"));
        assert_eq!(folder.load("a-1").expect("readable").expect("there").cpu_identity, "a-1");
        assert!(folder.load("b-2").expect("no file is no error").is_none());
        // A copy for another CPU is refused although its name fits.
        fs::copy(&path, folder.file_for("b-2")).expect("a copy");
        let message = folder.load("b-2").expect_err("made elsewhere").to_string();
        assert!(message.contains("made on a-1 and this is b-2"), "{message}");
        assert_eq!(folder.list().len(), 2);
    }

    #[test]
    fn a_users_own_model_comes_before_the_machines() {
        let temp = tempfile::tempdir().expect("a folder");
        let [own, machine] = ["own", "machine"].map(|name| ModelFolder::at(temp.path().join(name)));
        let folders = ModelFolders::new([own.clone(), machine.clone()]);
        let found = |id: &str| folders.find(id).expect("readable").map(|found| found.cpu_model);
        assert_eq!(found("a-1"), None);
        machine.save(&StoredModel { cpu_model: "the machine's".into(), ..stored("a-1") }).expect("saved");
        assert_eq!(found("a-1").as_deref(), Some("the machine's"));
        own.save(&StoredModel { cpu_model: "the user's".into(), ..stored("a-1") }).expect("saved");
        assert_eq!(found("a-1").as_deref(), Some("the user's"));
        assert_eq!(found("b-2"), None);
    }

    #[test]
    fn what_root_calibrates_is_where_users_look() {
        let (xdg, home) = (Some(OsStr::new("/x")), Some(OsStr::new("/root")));
        let machines = ModelFolder::of_machine();
        assert_eq!(folder_for_new(true, None, home), Some(machines.clone()));
        assert_eq!(folder_for_new(true, None, None), Some(machines.clone()));
        assert_eq!(folder_for_new(true, xdg, home), Some(ModelFolder::at("/x/eprof/models")));
        assert_eq!(
            folder_for_new(false, None, Some(OsStr::new("/h"))),
            Some(ModelFolder::at("/h/.config/eprof/models"))
        );
        assert_eq!(folder_for_new(false, None, None), None);
        let looked: Vec<ModelFolder> =
            ModelFolders::of_user(None, Some(OsStr::new("/h"))).iter().cloned().collect();
        assert_eq!(looked, [ModelFolder::at("/h/.config/eprof/models"), machines.clone()]);
        assert_eq!(ModelFolders::of_user(None, None), ModelFolders::new([machines]));
    }

    #[test]
    fn the_users_folder_follows_the_standard() {
        let of = |xdg: &str, home: &str| ModelFolder::of_user(Some(OsStr::new(xdg)), Some(OsStr::new(home)));
        assert_eq!(of("/x", "/h"), Some(ModelFolder::at("/x/eprof/models")));
        assert_eq!(of("", "/h"), Some(ModelFolder::at("/h/.config/eprof/models")));
        assert_eq!(of("relative", "/h"), Some(ModelFolder::at("/h/.config/eprof/models")));
        assert_eq!(ModelFolder::of_user(None, None), None);
    }
}
