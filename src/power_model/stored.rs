//! Models on disk: JSON that says for which CPU it was made, and is refused on any other.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::model::PowerModel;
use crate::hardware::Role;

/// The version of [`StoredModel`] that this eprof writes.
pub const STORED_FORMAT: u32 = 1;

/// A model with the machine it is valid for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredModel {
    /// Version of this structure.
    pub format: u32,
    /// Version of the eprof that wrote it.
    pub eprof_version: String,
    /// The CPU's name for model files, as in a recording's metadata.
    pub cpu_identity: String,
    /// The CPU's name for people.
    pub cpu_model: String,
    /// When it was made: seconds since 1970-01-01 UTC.
    pub created_unix: u64,
    /// The model.
    pub model: PowerModel,
}

/// Why a stored model cannot be used.
#[derive(Debug, Error, PartialEq)]
pub enum StoredModelError {
    /// No such structure.
    #[error("not a model file: {0}")]
    Unreadable(String),
    /// Written by a later eprof.
    #[error("the model file has format {0}, this eprof knows up to {STORED_FORMAT}: use a newer eprof")]
    TooNew(u32),
    /// Made on another kind of CPU.
    #[error(
        "the model was made on {made_on} and this is {here}: the same event counts and costs something else \
         on another CPU; run `eprof calibrate` here"
    )]
    OtherCpu {
        /// Identity in the file.
        made_on: String,
        /// Identity of this machine.
        here: String,
    },
    /// The same role, another event.
    #[error(
        "the model's event `{role}` is {in_model} and here it is {here}: its coefficient means something else; \
         run `eprof calibrate`"
    )]
    OtherEvent {
        /// The role.
        role: Role,
        /// Encoding in the model.
        in_model: String,
        /// Encoding on this machine.
        here: String,
    },
    /// Coefficients that cannot be.
    #[error("the model file has coefficients that are negative, infinite or not as many as its events")]
    Unsound,
}

impl StoredModel {
    /// The model with its machine, as text.
    ///
    /// # Errors
    /// If a number is not finite, which JSON cannot hold.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// [`StoredModelError::Unreadable`], [`StoredModelError::TooNew`] or [`StoredModelError::Unsound`].
    pub fn from_json(text: &str) -> Result<Self, StoredModelError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| StoredModelError::Unreadable(error.to_string());
        let version: Version = serde_json::from_str(text).map_err(unreadable)?;
        if version.format > STORED_FORMAT {
            return Err(StoredModelError::TooNew(version.format));
        }
        let stored: Self = serde_json::from_str(text).map_err(unreadable)?;
        if stored.model.is_sound() { Ok(stored) } else { Err(StoredModelError::Unsound) }
    }

    /// Whether the model may be used on a CPU of this identity whose events have these encodings
    /// (role, encoding). An event of the model that the machine does not offer is no hindrance here.
    ///
    /// # Errors
    /// [`StoredModelError::OtherCpu`] or [`StoredModelError::OtherEvent`].
    pub fn check<'a>(
        &self,
        cpu_identity: &str,
        events: impl IntoIterator<Item = (Role, &'a str)>,
    ) -> Result<(), StoredModelError> {
        if self.cpu_identity != cpu_identity {
            return Err(StoredModelError::OtherCpu {
                made_on: self.cpu_identity.clone(),
                here: cpu_identity.to_owned(),
            });
        }
        for (role, encoding) in events {
            let same_role = || self.model.events.iter().filter(|event| event.role == Some(role));
            if same_role().next().is_some() && !same_role().any(|event| event.encoding == encoding) {
                let in_model =
                    same_role().map(|event| event.encoding.as_str()).collect::<Vec<_>>().join(" or ");
                let here = encoding.to_owned();
                return Err(StoredModelError::OtherEvent { role, in_model, here });
            }
        }
        Ok(())
    }

    /// The file name for a CPU: its identity, with nothing in it that a path could trip over.
    pub fn file_name(cpu_identity: &str) -> String {
        let safe: String = cpu_identity
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
            .collect();
        format!("{}.json", safe.trim_start_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::DomainKind;
    use crate::power_model::presets::Preset;

    fn stored() -> StoredModel {
        StoredModel {
            format: STORED_FORMAT,
            eprof_version: "0.1.0".into(),
            cpu_identity: "GenuineIntel-6-2D-7".into(),
            cpu_model: "Xeon".into(),
            created_unix: 1,
            model: Preset::SandyBridge.model(),
        }
    }

    #[test]
    fn a_model_survives_the_file() {
        let text = stored().to_json().expect("finite numbers");
        let read = StoredModel::from_json(&text).expect("what was written");
        assert_eq!(read.model.events, stored().model.events);
        // JSON numbers are read to within their last digit.
        let costs = |stored: &StoredModel| stored.model.domains[&DomainKind::Cores].joules_per_event.clone();
        for (read, written) in costs(&read).iter().zip(costs(&stored())) {
            assert!((read / written - 1.0).abs() < 1e-15);
        }
        assert_eq!(read.check(&stored().cpu_identity, []), Ok(()));
    }

    #[test]
    fn another_cpu_is_refused_with_a_sentence() {
        let error = stored().check("AuthenticAMD-25-1-1", []).expect_err("another CPU");
        assert_eq!(
            error.to_string(),
            "the model was made on GenuineIntel-6-2D-7 and this is AuthenticAMD-25-1-1: the same event counts \
             and costs something else on another CPU; run `eprof calibrate` here"
        );
    }

    #[test]
    fn another_event_of_the_same_role_is_refused() {
        let events = |encoding| [(Role::Resource, encoding), (Role::LlcMiss, "x")];
        assert_eq!(stored().check("GenuineIntel-6-2D-7", events("cpu/event=0xa2,umask=0x4/")), Ok(()));
        let error = stored().check("GenuineIntel-6-2D-7", events("cpu/event=0xa2,umask=0x1/"));
        assert!(matches!(error, Err(StoredModelError::OtherEvent { .. })));
    }

    #[test]
    fn hostile_files_are_errors() {
        assert!(matches!(StoredModel::from_json("{"), Err(StoredModelError::Unreadable(_))));
        assert_eq!(StoredModel::from_json("{\"format\": 99}"), Err(StoredModelError::TooNew(99)));
        let text = stored().to_json().expect("finite").replace("2.06e-10", "-2.06e-10");
        assert_eq!(StoredModel::from_json(&text), Err(StoredModelError::Unsound));
    }

    #[test]
    fn file_names_stay_in_their_folder() {
        assert_eq!(StoredModel::file_name("GenuineIntel-6-2D-7"), "GenuineIntel-6-2D-7.json");
        assert_eq!(StoredModel::file_name("../../etc/x"), "_.._etc_x.json");
    }
}
