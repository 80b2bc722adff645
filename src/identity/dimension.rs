//! By what recordings are told apart in a report.

use std::fmt;
use std::str::FromStr;

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
    /// The value of a label.
    Label(String),
}

/// A text is no dimension's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("one of node, rank, job, pod, label:KEY")]
pub struct UnknownDimension;

impl Dimension {
    /// Those that have a name of their own.
    pub const NAMED: [Self; 4] = [Self::Node, Self::Rank, Self::Job, Self::Pod];

    /// What kind it is, in options and files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Rank => "rank",
            Self::Job => "job",
            Self::Pod => "pod",
            Self::Label(_) => "label",
        }
    }

    /// What an identity says of it, in words that stand for themselves. Recordings that do not say are one group.
    pub fn value(&self, identity: Option<&Identity>, hostname: &str) -> String {
        let of = |find: &dyn Fn(&Identity) -> Option<String>| identity.and_then(find);
        let value = match self {
            Self::Node => of(&|identity| identity.node()).or_else(|| text(hostname)),
            Self::Rank => of(&|identity| identity.job.rank.map(|rank| format!("rank={rank}"))),
            Self::Job => of(&|identity| {
                let job = identity.job.id.as_ref()?;
                Some(match &identity.job.step {
                    Some(step) => format!("job={job}.{step}"),
                    None => format!("job={job}"),
                })
            }),
            Self::Pod => of(&|identity| identity.pod.as_ref()?.title()),
            Self::Label(key) => {
                of(&|identity| identity.labels.get(key).map(|value| format!("{key}={value}")))
            }
        };
        value.unwrap_or_else(|| format!("[no {self}]"))
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
        let pod = Some(Pod { name: some("p"), namespace: some("n"), node: some("w1"), uid: None });
        let identity = Identity { job, labels, pod, ..Identity::default() };
        let value = |name: &str| name.parse::<Dimension>().expect(name).value(Some(&identity), "host");
        let all = ["node", "rank", "job", "pod", "label:version", "label:other"].map(value);
        assert_eq!(all, ["w1", "rank=3", "job=7.1", "n/p", "version=2", "[no label:other]"]);
        assert_eq!(Dimension::Node.value(None, "host"), "host");
        assert_eq!(Dimension::Rank.value(None, "host"), "[no rank]");
        assert!("label:".parse::<Dimension>().is_err() && "nodes".parse::<Dimension>().is_err());
    }
}
