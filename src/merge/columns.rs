//! Which domains of different recordings are summed in one column.

use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::profile::{DomainEnergy, Origin, Profile};
use crate::units::Joules;

use super::machines::{Machines, overlap, times};

/// The merged profile's domains, and where those of its parts are among them.
pub(super) struct Columns {
    pub infos: Vec<DomainInfo>,
    /// Of each part and each of its domains, the column.
    pub of_part: Vec<Vec<usize>>,
}

/// What domains must agree in to be summed. A package within a platform's meter is not one that stands alone: the former
/// is in the platform's sum already.
type Key = (String, DomainKind, Method, Option<usize>);

impl Columns {
    /// Of these profiles.
    pub fn of(parts: &[Profile]) -> Self {
        let mut columns = Self { infos: Vec::new(), of_part: Vec::new() };
        let mut keys: Vec<Key> = Vec::new();
        for part in parts {
            let infos: Vec<&DomainInfo> = part.domains.iter().map(|domain| &domain.info).collect();
            let mut places = vec![None; infos.len()];
            for domain in 0..infos.len() {
                columns.place(&infos, domain, &mut places, &mut keys, 0);
            }
            columns.of_part.push(places.into_iter().map(Option::unwrap_or_default).collect());
        }
        columns
    }

    /// Finds or makes the column of a domain, and before it that of the one that contains it.
    fn place(
        &mut self,
        infos: &[&DomainInfo],
        domain: usize,
        places: &mut [Option<usize>],
        keys: &mut Vec<Key>,
        depth: usize,
    ) -> usize {
        if let Some(column) = places[domain] {
            return column;
        }
        let info = infos[domain];
        let parent = info.parent.as_deref();
        let outer = infos.iter().position(|other| Some(other.name.as_str()) == parent);
        // Parents may form a ring in a damaged file.
        let outer = outer.filter(|_| depth < infos.len());
        let outer = outer.map(|outer| self.place(infos, outer, places, keys, depth + 1));
        let key = (info.name.clone(), info.kind, info.method, outer);
        let column = match keys.iter().position(|known| *known == key) {
            Some(column) => {
                self.infos[column] = of_both(&self.infos[column], info);
                column
            }
            None => {
                keys.push(key);
                let parent = outer.map(|outer| self.infos[outer].name.clone());
                let name = self.unused(&info.name, info.method);
                self.infos.push(DomainInfo { name, parent, ..info.clone() });
                self.infos.len() - 1
            }
        };
        places[domain] = Some(column);
        column
    }

    /// A name that no column has yet.
    fn unused(&self, name: &str, method: Method) -> String {
        let is_free = |name: &String| self.infos.iter().all(|info| info.name != *name);
        let method = match method {
            Method::Measured => "measured",
            Method::Estimated => "estimated",
        };
        let named = [name.to_owned(), format!("{name}-{method}")];
        let numbered = (2..).map(|number| format!("{name}-{method}-{number}"));
        named.into_iter().chain(numbered).find(is_free).unwrap_or_default()
    }

    /// The parts that have a column, each with the domain that is its.
    pub fn domains_of(
        &self,
        column: usize,
        parts: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = (usize, usize)> {
        parts.flat_map(move |part| {
            let of_column = self.of_part[part].iter().enumerate().filter(move |(_, known)| **known == column);
            of_column.map(move |(domain, _)| (part, domain))
        })
    }

    /// What estimates of all recordings may be off by together: assumed watts err in the same way everywhere, so it is the mean by
    /// joules of what each of them may be off by.
    pub fn weigh_watts_errors(&self, parts: &[Profile], domains: &mut [DomainEnergy]) {
        for (column, domain) in domains.iter_mut().enumerate() {
            let mut sums = (0.0, 0.0);
            let mut most = (f64::INFINITY, 0.0_f64);
            for (part, index) in self.domains_of(column, 0..parts.len()) {
                let DomainEnergy { info, balance } = &parts[part].domains[index];
                if info.method == Method::Estimated {
                    let joules = balance.measured.as_joules();
                    let error = info.error_of_watts();
                    sums = (sums.0 + joules * error, sums.1 + joules);
                    most = (most.0.min(error), most.1.max(error));
                }
            }
            if sums.1 > 0.0 {
                // A mean of equals is that, to the last bit: by it reports tell whose watts they are.
                domain.info.watts_error = Some((sums.0 / sums.1).clamp(most.0, most.1));
            }
        }
    }

    /// Recordings of one machine and one time that say different amounts of joules of one thing: of which some measured what others
    /// estimated, or that assumed other watts.
    pub fn warnings(&self, parts: &[Profile], machines: &Machines) -> Vec<String> {
        let assumed = |part: usize| {
            let of_cpus = |kind| matches!(kind, DomainKind::Package | DomainKind::Platform);
            let infos = parts[part].domains.iter().map(|domain| &domain.info);
            let mut infos = infos.filter(|info| of_cpus(info.kind));
            infos.next().map(|info| match info.method {
                Method::Measured => (info.method, None),
                Method::Estimated => (info.method, Some((info.static_power, info.error_of_watts()))),
            })
        };
        let pairs = || (0..parts.len()).flat_map(|a| (a + 1..parts.len()).map(move |b| (a, b)));
        let are_beside = |&(a, b): &(usize, usize)| {
            machines.of_part[a] == machines.of_part[b] && overlap(times(&parts[a]), times(&parts[b]))
        };
        let name = |part: usize| parts[part].recordings.first().map_or("a recording", Origin::title);
        let mut warnings = Vec::new();
        let differ_in_method =
            |a: usize, b: usize| matches!((assumed(a), assumed(b)), (Some(a), Some(b)) if a.0 != b.0);
        if let Some((a, b)) = pairs().filter(are_beside).find(|&(a, b)| differ_in_method(a, b)) {
            warnings.push(format!(
                "of {} and {}, which are of one machine and one time, one measured and one estimated: the machine's joules \
                 are counted twice. Report them apart",
                name(a),
                name(b)
            ));
        }
        let differ_in_watts = |a: usize, b: usize| matches!((assumed(a), assumed(b)), (Some(a), Some(b)) if a.0 == b.0 && a.1 != b.1);
        if let Some((a, b)) = pairs().filter(are_beside).find(|&(a, b)| differ_in_watts(a, b)) {
            warnings.push(format!(
                "{} and {}, which are of one machine and one time, were estimated by different watts (--watts): where both \
                 recorded, the machine has their mean, and functions have what their own recorder assumed. Report them apart",
                name(a),
                name(b)
            ));
        }
        warnings
    }
}

/// What holds for a domain of several machines.
fn of_both(a: &DomainInfo, b: &DomainInfo) -> DomainInfo {
    fn same<T: PartialEq + Clone>(a: &Option<T>, b: &Option<T>) -> Option<T> {
        a.clone().filter(|_| a == b)
    }
    let source = if a.source == b.source { a.source.clone() } else { "several sources".to_owned() };
    let error = a.watts_error.into_iter().chain(b.watts_error).reduce(f64::max);
    DomainInfo {
        source,
        package: same(&a.package, &b.package),
        resolution: a.resolution.into_iter().chain(b.resolution).reduce(Joules::max),
        refresh: a.refresh.max(b.refresh),
        static_power: same(&a.static_power, &b.static_power),
        rest: same(&a.rest, &b.rest),
        watts_error: error,
        bus_id: same(&a.bus_id, &b.bus_id),
        cuda_ordinal: same(&a.cuda_ordinal, &b.cuda_ordinal),
        ..a.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::RestPower;
    use crate::identity::Identity;
    use crate::profile::Balance;
    use crate::units::{Nanoseconds, Timestamp, Watts};

    #[test]
    fn what_holds_for_one_machine_alone_holds_for_none() {
        let joules = |joules: f64| Some(Joules::from_joules(joules));
        let info = |source: &str| DomainInfo::new("package-0", DomainKind::Package, source, Method::Measured);
        let one = DomainInfo {
            package: Some(0),
            resolution: joules(1.0),
            refresh: Some(Nanoseconds::from_millis(1)),
            static_power: Some(Watts::from_watts(3.0)),
            watts_error: Some(0.2),
            ..info("powercap")
        };
        let other = DomainInfo {
            package: Some(1),
            resolution: joules(2.0),
            refresh: None,
            static_power: Some(Watts::from_watts(3.0)),
            watts_error: Some(0.1),
            ..info("msr")
        };
        let both = of_both(&one, &other);
        assert_eq!((both.package, both.static_power), (None, one.static_power));
        assert_eq!((both.resolution, both.refresh, both.watts_error), (joules(2.0), one.refresh, Some(0.2)));
        assert_eq!((both.source.as_str(), of_both(&one, &one)), ("several sources", one.clone()));
    }

    /// Each thing that both have stands for both, each that they differ in for none, whichever comes first.
    #[test]
    fn what_both_have_alike_is_kept_one_by_one() {
        let rest = RestPower { power: Watts::from_watts(9.0), std_error: Watts::from_watts(0.5) };
        let one = DomainInfo {
            package: Some(3),
            resolution: Some(Joules::from_joules(1.0)),
            refresh: Some(Nanoseconds::from_millis(1)),
            static_power: Some(Watts::from_watts(3.0)),
            rest: Some(rest),
            watts_error: Some(0.2),
            bus_id: Some("01:00.0".to_owned()),
            cuda_ordinal: Some(2),
            ..DomainInfo::new("gpu-0", DomainKind::Gpu, "nvml", Method::Measured)
        };
        let bare = DomainInfo::new("gpu-0", DomainKind::Gpu, "nvml", Method::Measured);
        assert_eq!(of_both(&one, &one), one);
        // What one alone knows is not known of both, but for what bounds errors.
        let bounds = DomainInfo {
            resolution: one.resolution,
            refresh: one.refresh,
            watts_error: one.watts_error,
            ..bare.clone()
        };
        assert_eq!((of_both(&one, &bare), of_both(&bare, &one)), (bounds.clone(), bounds));
        let other = DomainInfo {
            package: Some(4),
            static_power: Some(Watts::from_watts(4.0)),
            rest: None,
            bus_id: Some("02:00.0".to_owned()),
            cuda_ordinal: Some(1),
            ..one.clone()
        };
        let neither = DomainInfo {
            package: None,
            static_power: None,
            rest: None,
            bus_id: None,
            cuda_ordinal: None,
            ..one.clone()
        };
        assert_eq!((of_both(&one, &other), of_both(&other, &one)), (neither.clone(), neither));
    }

    fn part(domains: &[(&str, Option<&str>, Method)]) -> Profile {
        let domain = |&(name, parent, method): &(&str, Option<&str>, Method)| DomainEnergy {
            info: DomainInfo {
                parent: parent.map(str::to_owned),
                ..DomainInfo::new(name, DomainKind::Package, "test", method)
            },
            balance: Balance::default(),
        };
        Profile { domains: domains.iter().map(domain).collect(), ..Profile::default() }
    }

    fn names(columns: &Columns) -> Vec<(&str, Option<&str>)> {
        columns.infos.iter().map(|info| (info.name.as_str(), info.parent.as_deref())).collect()
    }

    #[test]
    fn domains_are_summed_where_name_method_and_place_in_the_tree_agree() {
        use Method::{Estimated, Measured};
        let parts = [
            part(&[("cores", Some("package"), Measured), ("package", None, Measured)]),
            part(&[("package", None, Measured), ("cores", Some("package"), Measured)]),
            part(&[("package", None, Estimated)]),
            part(&[("package", Some("platform"), Measured), ("platform", None, Measured)]),
            part(&[("package", Some("platform"), Estimated), ("platform", None, Measured)]),
        ];
        let columns = Columns::of(&parts);
        assert_eq!(columns.of_part, [vec![1, 0], vec![0, 1], vec![2], vec![4, 3], vec![5, 3]]);
        let expected = [
            ("package", None),
            ("cores", Some("package")),
            ("package-estimated", None),
            ("platform", None),
            ("package-measured", Some("platform")),
            ("package-estimated-2", Some("platform")),
        ];
        assert_eq!(names(&columns), expected);
        // Who has a column, and which of its domains that is.
        let of = |column| columns.domains_of(column, 0..5).collect::<Vec<_>>();
        assert_eq!((of(0), of(1), of(3)), (vec![(0, 1), (1, 0)], vec![(0, 0), (1, 1)], vec![(3, 1), (4, 1)]));
        assert_eq!(columns.domains_of(0, 1..2).collect::<Vec<_>>(), [(1, 0)]);
    }

    /// Typical watts, the user's, other ones of the user's: beside each other they contradict each other.
    #[test]
    fn estimates_by_different_watts_are_told() {
        let recorded = |name: &str, start: u64, (idle, error): (f64, f64)| {
            let mut part = part(&[("package", None, Method::Estimated)]);
            part.domains[0].info.static_power = Some(Watts::from_watts(idle));
            part.domains[0].info.watts_error = Some(error);
            part.start = Timestamp::from_nanos(start);
            part.duration = Nanoseconds::from_nanos(10);
            let identity = Identity { boot: Some("x".to_owned()), ..Identity::default() };
            part.recordings = vec![Origin {
                name: Some(name.to_owned()),
                identity: Some(identity),
                is_monotonic: true,
                ..Origin::default()
            }];
            part
        };
        let said = |parts: &[Profile]| {
            let warnings = Columns::of(parts).warnings(parts, &Machines::of(parts));
            warnings.iter().filter(|text| text.contains("different watts")).count()
        };
        let [typical, users, others] =
            [("a", (1.5, 0.6)), ("b", (1.5, 0.0)), ("c", (9.0, 0.0))].map(|(name, of)| recorded(name, 0, of));
        for pair in [[&typical, &users], [&users, &others], [&others, &typical]] {
            assert_eq!(said(&pair.map(Clone::clone)), 1);
        }
        assert_eq!(said(&[users.clone(), recorded("d", 5, (1.5, 0.0))]), 0);
        assert_eq!(said(&[users, recorded("e", 10, (9.0, 0.0))]), 0, "one after the other");
    }

    /// 0.6 of several recordings is 0.6, and not a little less.
    #[test]
    fn a_mean_of_equal_errors_is_that_error() {
        for joules in [&[21.005, 28.752, 28.431, 28.856][..], &[0.1, 0.1, 0.1], &[0.3, 0.1]] {
            let of = |joules: &f64| {
                let mut part = part(&[("package", None, Method::Estimated)]);
                part.domains[0].info.watts_error = Some(0.6);
                part.domains[0].balance.measured = Joules::from_joules(*joules);
                part
            };
            let parts: Vec<Profile> = joules.iter().map(of).collect();
            let mut domains = vec![parts[0].domains[0].clone()];
            Columns::of(&parts).weigh_watts_errors(&parts, &mut domains);
            assert_eq!(domains[0].info.watts_error, Some(0.6), "{joules:?}");
        }
    }

    #[test]
    fn parents_that_form_a_ring_end() {
        let ring = part(&[("a", Some("b"), Method::Measured), ("b", Some("a"), Method::Measured)]);
        let columns = Columns::of(&[ring.clone(), ring]);
        assert_eq!(columns.of_part[0], columns.of_part[1]);
        assert!(columns.of_part[0].iter().all(|column| *column < columns.infos.len()));
    }

    /// 30 J that may be off by a tenth and 10 J by a half: 8 J of 40 J.
    #[test]
    fn assumed_watts_are_off_as_much_as_joules_of_all_recordings_are() {
        let estimated = |joules: f64, error: f64| {
            let mut part = part(&[("package", None, Method::Estimated)]);
            part.domains[0].info.watts_error = Some(error);
            part.domains[0].balance.measured = Joules::from_joules(joules);
            part
        };
        let error = |parts: &[Profile]| {
            let columns = Columns::of(parts);
            let with_balance =
                |info: &DomainInfo| DomainEnergy { info: info.clone(), balance: Balance::default() };
            let mut domains: Vec<DomainEnergy> = columns.infos.iter().map(with_balance).collect();
            columns.weigh_watts_errors(parts, &mut domains);
            domains[0].info.watts_error
        };
        let found = error(&[estimated(30.0, 0.1), estimated(10.0, 0.5)]).expect("assumed");
        assert!((found - 0.2).abs() < 1e-12, "{found}");
        assert_eq!(error(&[part(&[("package", None, Method::Measured)])]), None);
    }
}
