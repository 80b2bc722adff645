//! Passwords and tokens.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::PushError;
use crate::label::shell_word;
use crate::process::privileges;

/// No password or token is longer.
const MOST_BYTES: u64 = 64 << 10;

/// A password or a token. It has no way to be shown, and is not part of any text but the header that it is sent in.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("(secret)")
    }
}

/// Where a secret comes from: never from the command line, which everybody on the machine can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A file, read anew each time, so that it may be replaced while eprof runs.
    File(PathBuf),
    /// A variable of the environment.
    Variable(&'static str),
}

impl SecretSource {
    /// The file, if one is named, or else the variable, if it is set.
    pub fn choose(file: Option<&Path>, variable: &'static str) -> Option<Self> {
        match file {
            Some(path) => Some(Self::File(path.to_owned())),
            None => {
                std::env::var_os(variable).filter(|value| !value.is_empty()).map(|_| Self::Variable(variable))
            }
        }
    }

    /// Who else may read it, with the command that repairs that; `None` where nobody else may, or the file is not there, of
    /// which reading it tells.
    pub fn warning(&self) -> Option<String> {
        const READABLE_BY_ALL: u32 = 0o004;
        let Self::File(path) = self else { return None };
        let is_open = path.metadata().is_ok_and(|file| file.mode() & READABLE_BY_ALL != 0);
        let name = path.display();
        is_open.then(|| {
            format!(
                "everybody on this machine may read the secret in {name}: chmod o= {}",
                shell_word(&name.to_string())
            )
        })
    }

    /// The secret as it is now. Line ends behind it do not belong to it.
    ///
    /// A file is read by its user's own rights: an eprof with capabilities that its user has not would else send files that
    /// this one may not read.
    ///
    /// # Errors
    /// A file that cannot be read or is empty, several lines; a variable that is not set. The text has nothing of the
    /// secret.
    pub fn read(&self) -> Result<Secret, PushError> {
        let (bytes, name) = match self {
            Self::File(path) => {
                let bytes =
                    privileges::read_unaided(path, MOST_BYTES).map_err(PushError::file("read", path))?;
                (bytes, format!("the file {}", path.display()))
            }
            Self::Variable(name) => {
                let value = std::env::var_os(name).unwrap_or_default();
                (value.into_encoded_bytes(), format!("the variable {name}"))
            }
        };
        let wrong = |why: &str| PushError::Secret(format!("{name} {why}"));
        let text = String::from_utf8(bytes).map_err(|_| wrong("holds no text of UTF-8"))?;
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            return Err(wrong("is empty: write the password or token into it"));
        }
        if text.chars().any(char::is_control) {
            return Err(wrong(
                "has several lines or control characters: it should hold the password or token alone",
            ));
        }
        Ok(Secret(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_read_and_never_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let source = SecretSource::File(file.clone());
        std::fs::write(&file, "s3cret \n").expect("written");
        let secret = source.read().expect("read");
        assert_eq!(secret.reveal(), "s3cret ");
        assert!(!format!("{secret:?}").contains("s3cret"));
        std::fs::write(&file, "other\r\n").expect("written");
        assert_eq!(source.read().expect("read anew").reveal(), "other");
        for (bytes, why) in [
            (&b"\n"[..], "is empty"),
            (b"one\ntwo\n", "several lines"),
            (b"\xff\xfehidden", "UTF-8"),
            (&[b'a'; 70_000], "too large"),
        ] {
            std::fs::write(&file, bytes).expect("written");
            let said = source.read().expect_err("wrong").to_string();
            assert!(said.contains(why) && said.contains("token"), "{said}");
            assert!(!["two", "hidden", "aaaa"].iter().any(|text| said.contains(text)), "{said}");
        }
        let said = SecretSource::File(folder.path().join("missing")).read().expect_err("missing").to_string();
        assert!(said.contains("cannot read") && said.contains("missing"), "{said}");
    }

    #[test]
    fn a_file_that_everybody_may_read_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my token");
        std::fs::write(&file, "s3cret").expect("written");
        let warning = |mode: u32| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("changed");
            SecretSource::File(file.clone()).warning()
        };
        assert_eq!((warning(0o600), warning(0o640)), (None, None));
        let said = warning(0o644).expect("a warning");
        assert!(
            said.contains("chmod o= '") && said.contains("my token'") && !said.contains("s3cret"),
            "{said}"
        );
        assert_eq!(SecretSource::File(folder.path().join("missing")).warning(), None);
        assert_eq!(SecretSource::Variable("PATH").warning(), None);
    }

    #[test]
    fn a_file_comes_before_the_variable() {
        assert_eq!(SecretSource::choose(Some(Path::new("x")), "PATH"), Some(SecretSource::File("x".into())));
        assert_eq!(SecretSource::choose(None, "PATH"), Some(SecretSource::Variable("PATH")));
        assert_eq!(SecretSource::choose(None, "EPROF_NO_SUCH_VARIABLE"), None);
    }
}
