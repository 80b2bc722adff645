//! When a question is asked again: where windows come and go while it is asked.

use anyhow::{Context, Error};

use crate::does_not_add_up::{DoesNotAddUp, WindowsRemoved};
use crate::place::Place;

/// So often a place is asked whose sums differ each time in another way.
const ATTEMPTS: usize = 3;
/// A folder is asked more often: an agent may remove a window while each of its files is opened, and it is at hand.
const ATTEMPTS_OF_FOLDER: usize = 10;

/// Attempts at one question.
pub struct Attempts {
    left: usize,
    /// What did not add up the last time.
    before: Option<String>,
}

impl Attempts {
    /// At a question to this place, of which the first is made now.
    pub fn at(place: &Place) -> Self {
        let most = if let Place::Folder(_) = place { ATTEMPTS_OF_FOLDER } else { ATTEMPTS };
        Self { left: most - 1, before: None }
    }

    /// After an attempt that failed.
    ///
    /// # Errors
    /// What is said in place of an answer, where asking again would not help or did not help so far.
    pub fn after(&mut self, error: Error) -> Result<(), Error> {
        let is_removed = error.chain().any(|cause| cause.is::<WindowsRemoved>());
        let differs = error.chain().any(|cause| cause.is::<DoesNotAddUp>());
        if !is_removed && !differs {
            return Err(error);
        }
        // What differs in the same way twice did not come or go.
        let said = format!("{error:#}");
        if differs && self.before.replace(said.clone()) == Some(said) {
            return Err(error);
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if is_removed => return Err(error),
            None => {
                return Err(error).context(
                    "windows come and go while they are asked of: end the time in question before them, as by --until 10m",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn folder() -> Attempts {
        Attempts::at(&Place::Folder("energy".into()))
    }

    fn removed() -> Error {
        Error::from(WindowsRemoved("energy".into())).context("asked")
    }

    fn differs(by: usize) -> Error {
        Error::from(DoesNotAddUp(format!("{by} J differ"))).context("energy does not add up")
    }

    #[test]
    fn removed_windows_are_asked_for_again_up_to_a_bound() {
        let mut attempts = folder();
        let asked_again =
            std::iter::repeat_with(|| attempts.after(removed())).take_while(Result::is_ok).count();
        assert_eq!(asked_again, ATTEMPTS_OF_FOLDER - 1);
        let said = format!("{:#}", attempts.after(removed()).expect_err("all attempts are made"));
        assert!(said.contains("windows of energy were removed") && !said.contains('\n'), "{said}");
    }

    #[test]
    fn what_differs_in_the_same_way_is_damaged() {
        let mut attempts = folder();
        attempts.after(differs(1)).expect("a window may have come");
        attempts.after(removed()).expect("or gone");
        attempts.after(differs(2)).expect("or come");
        let said = format!("{:#}", attempts.after(differs(2)).expect_err("damaged"));
        assert_eq!(said, "energy does not add up: 2 J differ");
    }

    #[test]
    fn what_always_differs_otherwise_ends() {
        for (mut attempts, most) in [
            (folder(), ATTEMPTS_OF_FOLDER),
            (Attempts::at(&Place::parse("sail://host/lake".as_ref()).expect("a lake")), ATTEMPTS),
        ] {
            (1..most).for_each(|attempt| attempts.after(differs(attempt)).expect("asked again"));
            let said = format!("{:#}", attempts.after(differs(0)).expect_err("all attempts are made"));
            assert!(said.starts_with("windows come and go") && said.ends_with("0 J differ"), "{said}");
        }
    }

    #[test]
    fn other_errors_are_said_at_once() {
        let said = folder().after(anyhow!("no such folder")).expect_err("no use");
        assert_eq!(said.to_string(), "no such folder");
    }
}
