//! Which recordings are of one machine.

use crate::profile::{MachineEnergy, Origin, Profile};
use crate::units::Timestamp;

/// Machines, or rather boots: recordings of one machine before and after it was started anew have nothing in common.
pub(super) struct Machines {
    /// The machine of each part.
    pub of_part: Vec<usize>,
    names: Vec<(String, Option<String>)>,
}

/// Whose recording of when a profile is of: what profiles are sorted by, so that their order makes no difference.
pub(super) fn place(profile: &Profile) -> impl Ord + use<> {
    let origin = profile.recordings.first().cloned().unwrap_or_default();
    let boot = boot(&origin).map(str::to_owned);
    let (start, end) = times(profile);
    let started = (origin.started_unix_ns, start, end, origin.recorder_pid);
    (boot, origin.hostname, started, origin.name, profile.cells.len())
}

/// The boot whose clock and meters a recording's are; `None` where that is not known.
pub(super) fn boot(origin: &Origin) -> Option<&str> {
    origin.identity.as_ref()?.boot.as_deref().filter(|_| origin.is_monotonic)
}

/// When a recording began and ended, on its clock.
pub(super) fn times(profile: &Profile) -> (Timestamp, Timestamp) {
    (
        profile.start,
        Timestamp::from_nanos(profile.start.as_nanos().saturating_add(profile.duration.as_nanos())),
    )
}

/// Two stretches of time have one in common.
pub(super) fn overlap(a: (Timestamp, Timestamp), b: (Timestamp, Timestamp)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

fn origin(profile: &Profile) -> Option<&Origin> {
    profile.recordings.first()
}

impl Machines {
    /// Of these profiles. One whose boot is not known is a machine of its own.
    pub fn of(parts: &[Profile]) -> Self {
        let mut names: Vec<(String, Option<String>)> = Vec::new();
        let of_part = parts.iter().map(|part| {
            let boot = origin(part).and_then(boot);
            let known = names.iter().position(|(_, known)| boot.is_some() && known.as_deref() == boot);
            known.unwrap_or_else(|| {
                names.push((origin(part).map(Origin::node).unwrap_or_default(), boot.map(str::to_owned)));
                names.len() - 1
            })
        });
        Self { of_part: of_part.collect(), names }
    }

    /// The parts of a machine.
    pub fn parts(&self, machine: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.of_part.len()).filter(move |&part| self.of_part[part] == machine)
    }

    /// A place for the energy of each machine.
    pub fn energies(&self, columns: usize) -> Vec<MachineEnergy> {
        let energy = |(name, boot): &(String, Option<String>)| MachineEnergy {
            name: name.clone(),
            boot: boot.clone(),
            balances: vec![None; columns],
            in_slices: vec![Vec::new(); columns],
        };
        self.names.iter().map(energy).collect()
    }

    /// What is not known of machines.
    pub fn warnings(&self, parts: &[Profile]) -> Vec<String> {
        let unknown: Vec<&Profile> =
            parts.iter().filter(|part| origin(part).is_none_or(|origin| boot(origin).is_none())).collect();
        let titles = |parts: &[&Profile]| {
            const SHOWN: usize = 3;
            let names: Vec<&str> = parts.iter().filter_map(|part| origin(part)).map(Origin::title).collect();
            let more = names.len().saturating_sub(SHOWN);
            let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
            if more == 0 { shown } else { format!("{shown} and {more} more") }
        };
        if unknown.is_empty() {
            return Vec::new();
        }
        let mut warnings = vec![format!(
            "not known of which boot of which machine: {}. Each is taken for a machine of its own; if some are of \
             one machine and one time, its joules are counted more than once",
            titles(&unknown)
        )];
        for (at, one) in unknown.iter().enumerate() {
            let suspects = unknown[at + 1..].iter().filter(|other| may_be_one_machine(one, other));
            if let Some(other) = suspects.into_iter().next() {
                warnings.push(format!(
                    "{} and {} are of one host and one time by their wall clocks: joules that no function was \
                     charged with are very likely counted twice. Record both with this version of eprof",
                    titles(&[*one]),
                    titles(&[*other])
                ));
                break;
            }
        }
        warnings
    }
}

/// By host name and wall clock.
fn may_be_one_machine(a: &Profile, b: &Profile) -> bool {
    let on_the_wall = |part: &Profile| {
        let start = origin(part)?.started_unix_ns?;
        let end = start.saturating_add(part.duration.as_nanos());
        Some((Timestamp::from_nanos(start), Timestamp::from_nanos(end)))
    };
    let host = |part| origin(part).map(|origin| origin.hostname.as_str()).filter(|host| !host.is_empty());
    let (Some(of_a), Some(of_b)) = (on_the_wall(a), on_the_wall(b)) else { return false };
    host(a).is_some() && host(a) == host(b) && overlap(of_a, of_b)
}
