//! Recordings whose meters another recorder read.

use crate::analyze::fixture::{metadata, recording_with_readings};
use crate::analyze::{Dimensions, Options, analyze};
use crate::identity::Identity;
use crate::profile::Profile;
use crate::recording::Recording;
use crate::recording::metadata::{Metadata, MetersRead};
use crate::recording::node_meters::{Lending, NodeMeters};
use crate::units::Joules;

/// Ten rounds of samples.
const ROUNDS: usize = 10;

fn stacks() -> Vec<Vec<u64>> {
    (0..40 * ROUNDS as u64).map(|number| vec![1, 2 + number * number % 7, 10 + number % 3]).collect()
}

/// The same samples, with the readings that such a recorder takes.
fn recording(boot: &str, meters: MetersRead, is_read: impl Fn(usize) -> bool) -> Recording {
    let identity = Some(Identity { boot: Some(boot.to_owned()), ..Identity::default() });
    let domains = if meters == MetersRead::Not { Vec::new() } else { metadata().domains };
    recording_with_readings(&stacks(), Metadata { identity, meters, domains, ..metadata() }, is_read)
}

fn closely() -> Recording {
    recording("a", MetersRead::ForAll, |_| true)
}

fn now_and_then() -> Recording {
    recording("a", MetersRead::ByAnother, |index| matches!(index, 0 | 6 | ROUNDS))
}

fn profile(recording: &Recording) -> Profile {
    analyze(recording, &Options { dimensions: Dimensions::ALL, ..Options::default() })
}

/// Whatever was lent, the profile's joules are all of what was measured.
fn joules(profile: &Profile) -> (Vec<Joules>, Vec<f64>) {
    for domain in &profile.domains {
        assert!(domain.balance.holds(), "{}: {:?}", domain.info.name, domain.balance);
    }
    let measured = profile.domains.iter().map(|domain| domain.balance.measured.as_joules()).collect();
    (profile.cell_joules.clone(), measured)
}

fn meters(of: &[&Recording]) -> NodeMeters {
    let mut meters = NodeMeters::default();
    of.iter().for_each(|recording| meters.add(recording));
    meters
}

#[test]
fn who_was_lent_readings_is_divided_as_if_it_had_taken_them() {
    let (reader, mut waiting) = (closely(), now_and_then());
    let coarse = joules(&profile(&waiting));
    let meters = meters(&[&waiting, &reader]);
    assert_eq!(meters.lend_to(&mut waiting), Lending::Lent);
    let (expected, lent) = (profile(&reader), profile(&waiting));
    assert_eq!(joules(&lent), joules(&expected), "to the last bit");
    assert_eq!(lent.recordings[0].meters, expected.recordings[0].meters);
    // The sum was known without, and not when it was.
    for (lent, coarse) in joules(&lent).1.iter().zip(&coarse.1) {
        assert!((lent - coarse).abs() < 1e-9, "{lent} J, {coarse} J");
    }
    assert_ne!(joules(&lent).0, coarse.0);
}

#[test]
fn who_read_nothing_gets_what_was_counted_in_its_time() {
    let (reader, mut other) = (closely(), recording("a", MetersRead::Not, |_| false));
    assert!(profile(&other).domains.is_empty());
    assert_eq!(meters(&[&reader, &other]).lend_to(&mut other), Lending::Lent);
    let (expected, lent) = (joules(&profile(&reader)), joules(&profile(&other)));
    assert_eq!(expected.1.len(), lent.1.len());
    for (lent, expected) in lent.1.iter().zip(&expected.1) {
        // From its first sample to its last, which are within the reader's time.
        assert!(*lent < *expected && *lent > 0.98 * expected, "{lent} J, {expected} J");
    }
}

#[test]
fn nobody_lends_to_another_machine_and_nobody_borrows_without_need() {
    let mut reader = closely();
    let mut stranger = recording("b", MetersRead::ByAnother, |index| matches!(index, 0 | ROUNDS));
    let meters = meters(&[&reader, &stranger]);
    assert_eq!(meters.lend_to(&mut stranger), Lending::NobodyHasThem);
    assert_eq!(meters.lend_to(&mut reader), Lending::NotNeeded);
    assert!(stranger.lent_readings().is_none() && reader.lent_readings().is_none());
    // What it read itself is used.
    assert!(joules(&profile(&stranger)).1[0] > 0.0);
}
