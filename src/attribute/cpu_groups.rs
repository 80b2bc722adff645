//! Which domains feed which CPUs.

/// CPUs fed by the same domains are one **group**: for attribution they are alike.
#[derive(Debug)]
pub(super) struct CpuGroups {
    /// Group of each CPU that some domain names.
    of_cpu: Vec<u32>,
    /// By group: the domains that feed it, in order.
    domains: Vec<Vec<usize>>,
}

/// Samples that do not tell their CPU: every domain may have fed it.
const UNKNOWN: u32 = 0;
/// CPUs that no domain names: fed by those domains that name none.
const UNNAMED: u32 = 1;
/// Kernels end at 8192 CPUs; a number beyond is damage in the file.
const MOST: u32 = 1 << 16;

impl CpuGroups {
    /// From the CPUs of each domain; none: the domain feeds all.
    pub fn new(cpus_of_domains: &[Vec<u32>]) -> Self {
        let count = cpus_of_domains.len();
        let everywhere = (0..count).filter(|domain| cpus_of_domains[*domain].is_empty());
        let everywhere: Vec<usize> = everywhere.collect();
        let named = || cpus_of_domains.iter().flatten().copied().filter(|cpu| *cpu < MOST);
        let cpus = named().max().map_or(0, |last| last as usize + 1);
        let mut of_each: Vec<Vec<usize>> = vec![everywhere.clone(); cpus];
        for (domain, cpus) in cpus_of_domains.iter().enumerate() {
            for cpu in cpus.iter().filter(|cpu| **cpu < MOST) {
                of_each[*cpu as usize].push(domain);
            }
        }
        let mut domains = vec![(0..count).collect(), everywhere];
        let mut group_of = std::collections::BTreeMap::new();
        let of_cpu = of_each.into_iter().map(|mut fed| {
            fed.sort_unstable();
            fed.dedup();
            *group_of.entry(fed).or_insert_with_key(|fed| {
                domains.push(fed.clone());
                domains.len() as u32 - 1
            })
        });
        Self { of_cpu: of_cpu.collect(), domains }
    }

    /// The group of a sample's CPU.
    #[inline]
    pub fn group(&self, cpu: Option<u32>) -> u32 {
        cpu.map_or(UNKNOWN, |cpu| self.of_cpu.get(cpu as usize).copied().unwrap_or(UNNAMED))
    }

    /// The domains that feed each group.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.domains
    }

    /// Whether a domain's energy goes to this CPU.
    pub fn feeds(&self, domain: usize, cpu: u32) -> bool {
        self.domains[self.group(Some(cpu)) as usize].binary_search(&domain).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_the_same_domains_are_a_group() {
        let cpu_groups = CpuGroups::new(&[vec![0, 1], vec![2, 3], vec![], vec![1], vec![MOST, 1, 1]]);
        let fed = |cpu| cpu_groups.groups()[cpu_groups.group(cpu) as usize].clone();
        assert_eq!(fed(Some(0)), [0, 2]);
        assert_eq!(fed(Some(1)), [0, 2, 3, 4]);
        assert_eq!(cpu_groups.group(Some(2)), cpu_groups.group(Some(3)));
        assert_eq!(fed(Some(3)), [1, 2]);
        assert_eq!(fed(Some(4)), [2]);
        assert_eq!(fed(Some(u32::MAX)), [2]);
        assert_eq!(fed(None), [0, 1, 2, 3, 4]);
        assert!(cpu_groups.feeds(3, 1) && !cpu_groups.feeds(3, 0) && cpu_groups.feeds(2, 77));
    }
}
