//! The control groups of a process, one in each hierarchy, as `/proc/PID/cgroup` tells them.

/// The controller by whose hierarchy the kernel tells groups of samples.
const OF_SAMPLES: &str = "perf_event";

/// A kernel's path has at most so many bytes.
const LONGEST_PATH: usize = 4096;

/// The control groups of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlGroups {
    /// Of each hierarchy: its controllers, none of version 2, and the path.
    hierarchies: Vec<(Vec<String>, String)>,
}

impl ControlGroups {
    /// From lines of `/proc/PID/cgroup`: `7:cpu,cpuacct:/path`, of version 2 `0::/path`.
    pub fn of_file(text: &str) -> Self {
        let of_line = |line: &str| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let controllers = controllers.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
            let is_path = !path.is_empty() && path.len() <= LONGEST_PATH;
            is_path.then(|| (controllers.collect(), path.to_owned()))
        };
        Self { hierarchies: text.lines().filter_map(of_line).collect() }
    }

    /// One group that is known by its path alone.
    pub fn of_path(path: String) -> Self {
        Self { hierarchies: vec![(Vec::new(), path)] }
    }

    /// Whether samples tell groups of a hierarchy of version 1: where the controller of perf events is in one. Else they tell
    /// those of version 2, whatever else is mounted beside it.
    pub fn samples_tell_version_1(&self) -> bool {
        self.hierarchies.iter().any(|(controllers, _)| is_of_samples(controllers))
    }

    /// The group that samples of the process tell, which is what it is called everywhere.
    pub fn sampled(&self) -> Option<&str> {
        let is_1 = self.samples_tell_version_1();
        let is_sampled = |(controllers, _): &&(Vec<String>, String)| {
            if is_1 { is_of_samples(controllers) } else { controllers.is_empty() }
        };
        self.hierarchies.iter().find(is_sampled).map(|(_, path)| &**path)
    }

    /// The groups in all hierarchies, that which samples tell first.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.sampled().into_iter().chain(self.hierarchies.iter().map(|(_, path)| &**path))
    }
}

fn is_of_samples(controllers: &[String]) -> bool {
    controllers.iter().any(|name| name == OF_SAMPLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_that_of_the_hierarchy_that_samples_tell() {
        let table = [
            ("0::/a/b\n", Some("/a/b")),
            ("0::/\n", Some("/")),
            // Both versions, perf events with the second one: what memory is counted by does not matter.
            (
                "4:memory:/docker/x\n1:name=systemd:/\n0::/system.slice/a.service\n",
                Some("/system.slice/a.service"),
            ),
            // Both versions, perf events with the first one.
            (
                "11:cpu,perf_event:/docker/x\n1:name=systemd:/docker/x\n0::/system.slice/docker.service\n",
                Some("/docker/x"),
            ),
            (
                "7:perf_event:/\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n",
                Some("/"),
            ),
            // A path has colons.
            ("0::/a.slice:cri-containerd:1\n", Some("/a.slice:cri-containerd:1")),
            ("4:memory:/docker/x\n", None),
            ("nonsense\n0::\n", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(ControlGroups::of_file(text).sampled(), expected, "{text}");
        }
        let long = format!("0::/{}\n", "x".repeat(LONGEST_PATH));
        assert_eq!(ControlGroups::of_file(&long), ControlGroups::default());
    }
}
