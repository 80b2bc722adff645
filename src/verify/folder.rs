//! Where verifications are kept: beside the power models, one file per kind of CPU.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::verification::{VERIFICATION_FORMAT, Verification};
use crate::power_model::folder::{FolderError, ModelFolder, ModelFolders};

/// The folder beside that of the models.
const NAME: &str = "verifications";

/// Keeps a verification where the models of `folder` are, and returns its file.
///
/// # Errors
/// If it cannot be written.
pub fn save(folder: &ModelFolder, verification: &Verification) -> Result<PathBuf, FolderError> {
    let text = serde_json::to_string_pretty(verification)? + "\n";
    folder.beside(NAME).write(&verification.cpu_identity, &text)
}

/// The verification for a kind of CPU, if there is one that this eprof can read.
pub fn load(folder: &ModelFolder, cpu_identity: &str) -> io::Result<Option<Verification>> {
    let text = match fs::read_to_string(folder.beside(NAME).file_for(cpu_identity)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(None);
        }
        other => other?,
    };
    let read: Verification = serde_json::from_str(&text)?;
    Ok((read.format == VERIFICATION_FORMAT && read.cpu_identity == cpu_identity).then_some(read))
}

/// The first verification for a kind of CPU in the folders in which models are looked for. `None` also where the power
/// model was calibrated anew since: it says nothing of what eprof does now.
pub fn find(folders: &ModelFolders, cpu_identity: &str) -> Option<Verification> {
    let found = folders.iter().find_map(|folder| load(folder, cpu_identity).ok().flatten())?;
    let calibrated = folders.find(cpu_identity).ok().flatten().map(|model| model.created_unix);
    calibrated.is_none_or(|calibrated| calibrated <= found.created_unix).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::presets::Preset;
    use crate::power_model::stored::{STORED_FORMAT, StoredModel};
    use crate::verify::comparison::Verdict;

    fn verification(cpu_identity: &str, created_unix: u64) -> Verification {
        let verdict = Verdict {
            mean_error: 0.012,
            worst_error: 0.029,
            truth_error: 0.004,
            held: 19,
            rows: 20,
            by_time_mean_error: 0.3,
            by_time_worst_error: 0.6,
        };
        Verification {
            format: VERIFICATION_FORMAT,
            eprof_version: "0.1.0".into(),
            cpu_identity: cpu_identity.into(),
            cpu_model: String::new(),
            created_unix,
            meters: Vec::new(),
            idle_watts: 10.0,
            kernels: Vec::new(),
            comparisons: Vec::new(),
            verdict,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_verification_is_of_its_cpu_and_no_older_than_the_model() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = ModelFolder::at(temp.path().join("eprof/models"));
        let folders = ModelFolders::new([folder.clone()]);
        assert_eq!(find(&folders, "a-1"), None);
        let path = save(&folder, &verification("a-1", 100)).expect("saved");
        assert_eq!(path, temp.path().join("eprof/verifications/a-1.json"));
        assert_eq!(find(&folders, "a-1"), Some(verification("a-1", 100)));
        assert_eq!(find(&folders, "b-2"), None);
        assert!(folder.list().is_empty(), "it is no model");
        fs::copy(&path, path.with_file_name("b-2.json")).expect("a copy");
        assert_eq!(find(&folders, "b-2"), None, "made elsewhere");

        let calibrated = |created_unix| StoredModel {
            format: STORED_FORMAT,
            eprof_version: "0.1.0".into(),
            cpu_identity: "a-1".into(),
            cpu_model: String::new(),
            created_unix,
            model: Preset::Generic.model(),
        };
        folder.save(&calibrated(99)).expect("saved");
        assert!(find(&folders, "a-1").is_some());
        folder.save(&calibrated(101)).expect("saved");
        assert_eq!(find(&folders, "a-1"), None, "another model than was verified");
    }

    #[test]
    fn what_cannot_be_read_is_not_quoted() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = ModelFolder::at(temp.path().join("eprof/models"));
        let path = save(&folder, &verification("a-1", 100)).expect("saved");
        fs::write(path, "{").expect("written");
        assert!(load(&folder, "a-1").is_err());
        assert_eq!(find(&ModelFolders::new([folder]), "a-1"), None);
    }
}
