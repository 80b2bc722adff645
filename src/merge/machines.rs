//! Which recordings are of one machine.

use super::node_names::{self, NodeNames};
use crate::identity::Dimension;
use crate::profile::{MachineEnergy, Origin, Profile};
use crate::units::Timestamp;

/// Machines, or rather boots: recordings of one machine before and after it was started anew have nothing in common.
pub(super) struct Machines {
    /// The machine of each part.
    pub of_part: Vec<usize>,
    names: NodeNames,
    boots: Vec<Option<String>>,
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
        let mut boots: Vec<Option<String>> = Vec::new();
        let of_part = parts.iter().map(|part| {
            let boot = origin(part).and_then(boot);
            let known = boots.iter().position(|known| boot.is_some() && known.as_deref() == boot);
            known.unwrap_or_else(|| {
                boots.push(boot.map(str::to_owned));
                boots.len() - 1
            })
        });
        let of_part: Vec<usize> = of_part.collect();
        Self { names: node_names::of(parts, &of_part), boots, of_part }
    }

    /// The parts of a machine.
    pub fn parts(&self, machine: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.of_part.len()).filter(move |&part| self.of_part[part] == machine)
    }

    /// Calls the nodes of these profiles by the names that they have beside each other.
    pub fn name_nodes(&self, parts: &mut [Profile]) {
        for (part, node) in parts.iter_mut().zip(&self.names.of_part) {
            for origin in &mut part.recordings {
                origin.node = origin.told(&Dimension::Node).and(Some(node.clone()));
            }
        }
    }

    /// A place for the energy of each machine.
    pub fn energies(&self, columns: usize) -> Vec<MachineEnergy> {
        let energy = |(name, boot): (&String, &Option<String>)| MachineEnergy {
            name: name.clone(),
            boot: boot.clone(),
            balances: vec![None; columns],
            in_slices: vec![Vec::new(); columns],
        };
        self.names.of_machine.iter().zip(&self.boots).map(energy).collect()
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
        let mut warnings = node_names::warnings(parts, &self.of_part, &self.names);
        if unknown.is_empty() {
            return warnings;
        }
        warnings.push(format!(
            "not known of which boot of which machine: {}. Each is taken for a machine of its own; if some are of \
             one machine and one time, its joules are counted more than once",
            titles(&unknown)
        ));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::units::Nanoseconds;

    /// A recording of this boot, host and stretch of time, both by its clock and on the wall.
    fn part(name: &str, boot: Option<&str>, host: &str, (start, end): (u64, u64)) -> Profile {
        let identity = Identity { boot: boot.map(str::to_owned), ..Identity::default() };
        Profile {
            start: Timestamp::from_nanos(start),
            duration: Nanoseconds::from_nanos(end - start),
            recordings: vec![Origin {
                name: Some(name.to_owned()),
                hostname: host.to_owned(),
                identity: Some(identity),
                started_unix_ns: Some(start),
                is_monotonic: true,
                ..Origin::default()
            }],
            ..Profile::default()
        }
    }

    #[test]
    fn recordings_of_one_boot_are_of_one_machine_and_unknown_ones_of_their_own() {
        let mut other_clock = part("d", Some("x"), "h", (0, 9));
        other_clock.recordings[0].is_monotonic = false;
        let parts = [
            part("a", Some("x"), "h", (0, 9)),
            part("b", Some("y"), "h", (0, 9)),
            part("c", None, "h", (0, 9)),
            other_clock,
            part("e", Some("x"), "h", (0, 9)),
            part("f", None, "h", (0, 9)),
        ];
        let machines = Machines::of(&parts);
        assert_eq!(machines.of_part, [0, 1, 2, 3, 0, 4]);
        assert_eq!(machines.parts(0).collect::<Vec<_>>(), [0, 4]);
        let energies = machines.energies(2);
        let named = energies.iter().map(|energy| (energy.name.as_str(), energy.boot.as_deref()));
        let expected = [("h", Some("x")), ("h", Some("y")), ("h", None), ("h", None), ("h", None)];
        assert_eq!(named.collect::<Vec<_>>(), expected);
        assert!(energies.iter().all(|energy| energy.balances == [None, None]));
    }

    #[test]
    fn windows_that_only_touch_have_nothing_in_common() {
        let window = |(from, to)| (Timestamp::from_nanos(from), Timestamp::from_nanos(to));
        let have_common = |a, b| [overlap(window(a), window(b)), overlap(window(b), window(a))];
        assert_eq!(have_common((0, 10), (10, 20)), [false; 2]);
        assert_eq!(have_common((0, 11), (10, 20)), [true; 2]);
        assert_eq!(have_common((0, 30), (10, 20)), [true; 2]);
        assert_eq!(have_common((0, 10), (11, 20)), [false; 2]);
        let long = part("a", None, "h", (5, u64::MAX - 1));
        assert_eq!(times(&long), window((5, u64::MAX - 1)));
    }

    #[test]
    fn one_host_at_one_time_may_be_one_machine() {
        let at = |host, window| part("a", None, host, window);
        let is_suspect = |a: &Profile, b: &Profile| [may_be_one_machine(a, b), may_be_one_machine(b, a)];
        assert_eq!(is_suspect(&at("h", (0, 10)), &at("h", (9, 20))), [true; 2]);
        assert_eq!(is_suspect(&at("h", (0, 10)), &at("h", (10, 20))), [false; 2]);
        assert_eq!(is_suspect(&at("h", (0, 10)), &at("i", (0, 10))), [false; 2]);
        assert_eq!(is_suspect(&at("", (0, 10)), &at("", (0, 10))), [false; 2], "no host is named");
        let mut timeless = at("h", (0, 10));
        timeless.recordings[0].started_unix_ns = None;
        assert_eq!(is_suspect(&timeless, &at("h", (0, 10))), [false; 2]);
        timeless.recordings.clear();
        assert_eq!(is_suspect(&timeless, &at("h", (0, 10))), [false; 2]);
    }

    #[test]
    fn what_is_not_known_is_said_once_with_examples() {
        let warnings = |parts: &[Profile]| Machines::of(parts).warnings(parts);
        assert_eq!(warnings(&[part("a", Some("x"), "h", (0, 9))]), Vec::<String>::new());
        let apart: Vec<Profile> = ["a", "b", "c"]
            .into_iter()
            .zip(0..)
            .map(|(name, at)| part(name, None, "h", (at * 10, at * 10 + 10)))
            .collect();
        let said = warnings(&apart);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(": a, b, c. Each"), "{said:?}");
        let mut together = apart.clone();
        together.extend([
            part("d", None, "h", (25, 40)),
            part("e", None, "h", (26, 40)),
            part("f", Some("x"), "h", (0, 40)),
        ]);
        let said = warnings(&together);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains(": a, b, c and 2 more. Each"), "{said:?}");
        // The first pair of them.
        assert!(said[1].starts_with("c and d are of one host"), "{said:?}");
    }

    #[test]
    fn profiles_have_an_order_of_their_own() {
        let first = part("a", Some("x"), "h", (0, 9));
        let larger = |change: &dyn Fn(&mut Profile)| {
            let mut profile = first.clone();
            change(&mut profile);
            place(&profile) > place(&first)
        };
        assert!(larger(&|profile| profile.recordings[0].hostname = "i".to_owned()));
        assert!(larger(&|profile| profile.recordings[0].name = Some("b".to_owned())));
        assert!(larger(&|profile| profile.recordings[0].recorder_pid = Some(0)));
        assert!(larger(&|profile| profile.recordings[0].started_unix_ns = Some(1)));
        assert!(larger(&|profile| profile.start = Timestamp::from_nanos(1)));
        assert!(larger(&|profile| profile.duration = Nanoseconds::from_nanos(10)));
        assert!(!larger(&|profile| profile.recordings[0].identity = None));
    }
}
