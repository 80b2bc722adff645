//! By what recordings are told apart in a report.

use std::fmt;
use std::str::FromStr;

use super::cgroup;
use super::container::Pod;
use super::labels::Labels;
use super::text::text;
use super::value::Identity;

/// By what recordings are told apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The machine, by its name in the job or else its own.
    Node,
    /// The process's number in its job.
    Rank,
    /// The job.
    Job,
    /// The pod.
    Pod,
    /// The control group: container, service, or its path.
    Cgroup,
    /// The value of a label.
    Label(String),
}

/// A text is no dimension's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("one of node, rank, job, pod, label:KEY")]
pub struct UnknownDimension;

impl Dimension {
    /// Those that have a name of their own.
    pub const NAMED: [Self; 5] = [Self::Node, Self::Rank, Self::Job, Self::Pod, Self::Cgroup];

    /// Threads of one recording may differ by it.
    pub fn is_of_threads(&self) -> bool {
        matches!(self, Self::Pod | Self::Cgroup)
    }

    /// What kind it is, in options and files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Rank => "rank",
            Self::Job => "job",
            Self::Pod => "pod",
            Self::Cgroup => "cgroup",
            Self::Label(_) => "label",
        }
    }

    /// What an identity says of it, in words that stand for themselves. Recordings that do not say are one group.
    /// `group` is the path of the control group of the thread in question, where samples told it: it says more of this
    /// thread than the identity, which is of all.
    pub fn value(&self, identity: Option<&Identity>, hostname: &str, group: Option<&str>) -> String {
        self.told(identity, hostname, group).unwrap_or_else(|| format!("[no {self}]"))
    }

    /// The same, where it is said.
    pub fn told(&self, identity: Option<&Identity>, hostname: &str, group: Option<&str>) -> Option<String> {
        let of = |find: &dyn Fn(&Identity) -> Option<String>| identity.and_then(find);
        match self {
            Self::Node => of(&|identity| identity.node()).or_else(|| text(hostname)),
            Self::Rank => of(&|identity| identity.job.rank.map(|rank| format!("rank={rank}"))),
            Self::Job => of(&|identity| {
                let job = identity.job.id.as_ref()?;
                Some(match &identity.job.step {
                    Some(step) => format!("job={job}.{step}"),
                    None => format!("job={job}"),
                })
            }),
            Self::Pod => {
                let whole = identity.and_then(|identity| identity.pod.as_ref());
                match group {
                    None => whole.and_then(Pod::title),
                    Some(path) => Pod::uid_of_cgroup(path).map(|uid| {
                        let named = whole.filter(|pod| pod.uid.as_ref() == Some(&uid)).and_then(Pod::title);
                        named.unwrap_or(uid)
                    }),
                }
            }
            Self::Cgroup => {
                let path = group.or_else(|| identity?.cgroup.as_deref());
                path.map(cgroup::title)
            }
            Self::Label(key) => {
                of(&|identity| identity.labels.get(key).map(|value| format!("{key}={value}")))
            }
        }
    }
}

impl Identity {
    /// What the machine is called in its job or by its cluster.
    pub fn node(&self) -> Option<String> {
        self.job.node.clone().or_else(|| self.pod.as_ref()?.node.clone())
    }
}

impl Pod {
    /// Namespace and name, or else the UID.
    pub fn title(&self) -> Option<String> {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => Some(format!("{namespace}/{name}")),
            (_, Some(name)) => Some(name.clone()),
            _ => self.uid.clone(),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "{}:{key}", self.kind()),
            named => f.write_str(named.kind()),
        }
    }
}

impl FromStr for Dimension {
    type Err = UnknownDimension;

    fn from_str(name: &str) -> Result<Self, UnknownDimension> {
        if let Some(key) = name.strip_prefix("label:") {
            return if Labels::is_key(key) { Ok(Self::Label(key.to_owned())) } else { Err(UnknownDimension) };
        }
        Self::NAMED.into_iter().find(|dimension| dimension.to_string() == name).ok_or(UnknownDimension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Job;

    #[test]
    fn values_are_told_or_said_to_be_missing() {
        let labels = Labels::new([("version".to_owned(), "2".to_owned())]).expect("one");
        let some = |text: &str| Some(text.to_owned());
        let job = Job { id: some("7"), step: some("1"), rank: Some(3), node: None };
        let pod = Pod { name: some("p"), namespace: some("n"), node: some("w1"), uid: None };
        let identity = Identity { job, labels, pod: Some(pod.clone()), ..Identity::default() };
        let value = |name: &str| name.parse::<Dimension>().expect(name).value(Some(&identity), "host", None);
        let all = ["node", "rank", "job", "pod", "cgroup", "label:version", "label:other"].map(value);
        assert_eq!(all, ["w1", "rank=3", "job=7.1", "n/p", "[no cgroup]", "version=2", "[no label:other]"]);
        assert_eq!(Dimension::Node.value(None, "host", None), "host");
        assert_eq!(Dimension::Rank.value(None, "host", None), "[no rank]");
        let uid = "2f1c9e3a-7b44-4b1e-9c7e-0d6d5f1f2a3b";
        let path = format!("/kubepods/burstable/pod{uid}/x");
        let cgroup = some("/system.slice/app.service");
        let identity = Identity { cgroup, pod: Some(Pod { uid: some(uid), ..pod.clone() }), ..identity };
        let value = |by: Dimension, group| by.value(Some(&identity), "host", group);
        assert_eq!(value(Dimension::Cgroup, None), "app.service", "all of a recording that tells no more");
        assert_eq!(value(Dimension::Cgroup, Some("/")), "/");
        assert_eq!(value(Dimension::Pod, Some(&path)), "n/p", "the recording knows its own pod by name");
        let neighbour = path.replace("2f1c", "3f1c");
        assert_eq!(value(Dimension::Pod, Some(&neighbour)), uid.replace("2f1c", "3f1c"));
        assert_eq!(value(Dimension::Pod, Some("/")), "[no pod]");
        assert!("label:".parse::<Dimension>().is_err() && "nodes".parse::<Dimension>().is_err());
    }
}
