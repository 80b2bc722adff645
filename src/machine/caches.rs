//! The caches that hold data, as sysfs tells them.

use super::cpu_list;
use super::roots::{Roots, read_number, read_trimmed, sorted_names};

/// A cache that holds data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1 for the one next to the core.
    pub level: u32,
    /// Its size.
    pub bytes: u64,
    /// CPUs that share it.
    pub cpus: Vec<u32>,
}

/// The data and unified caches of a CPU, nearest first; empty if the kernel does not tell.
pub fn of_cpu(roots: &Roots, cpu: u32) -> Vec<Cache> {
    let folder = roots.sysfs.join(format!("devices/system/cpu/cpu{cpu}/cache"));
    let cache = |name: String| {
        let folder = folder.join(name);
        let kind = read_trimmed(&folder.join("type")).ok()?;
        let level = read_number(&folder.join("level")).ok()?;
        let bytes = size(&read_trimmed(&folder.join("size")).ok()?)?;
        let shared = read_trimmed(&folder.join("shared_cpu_list")).ok();
        let cpus = shared.and_then(|list| cpu_list::parse(&list)).filter(|cpus| !cpus.is_empty());
        (kind != "Instruction").then_some(Cache { level, bytes, cpus: cpus.unwrap_or(vec![cpu]) })
    };
    let indices = sorted_names(&folder).into_iter().filter(|name| name.starts_with("index"));
    let mut caches: Vec<Cache> = indices.filter_map(cache).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// `32K`, `12M`; the kernel writes kibibytes, some firmware larger units. `None` for nothing at all.
fn size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor: u64 = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture::FixtureMachine;

    #[test]
    fn instruction_caches_are_left_out() {
        let machine = FixtureMachine::new(
            "sys/devices/system/cpu/cpu0/cache/index{0-3}/level: {1,1,2,3}\n\
             sys/devices/system/cpu/cpu0/cache/index{0-3}/type: {Data,Instruction,Unified,Unified}\n\
             sys/devices/system/cpu/cpu0/cache/index{0-3}/size: {48K,32K,2M,32768K}\n\
             sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list: 0-7",
        );
        let caches = of_cpu(&Roots::under(machine.path()), 0);
        let sizes: Vec<(u32, u64, usize)> =
            caches.iter().map(|cache| (cache.level, cache.bytes, cache.cpus.len())).collect();
        assert_eq!(sizes, [(1, 48 << 10, 1), (2, 2 << 20, 1), (3, 32 << 20, 8)]);
    }

    #[test]
    fn nonsense_is_no_cache() {
        let machine = FixtureMachine::new(
            "sys/devices/system/cpu/cpu0/cache/index{0-2}/level: {1,2,x}\n\
             sys/devices/system/cpu/cpu0/cache/index{0-2}/type: Data\n\
             sys/devices/system/cpu/cpu0/cache/index{0-2}/size: {99999999999999999999K,0K,32K}",
        );
        assert_eq!(of_cpu(&Roots::under(machine.path()), 0), []);
        assert_eq!(of_cpu(&Roots::under(machine.path()), 7), []);
        assert_eq!([size("8M"), size("1T"), size("")], [Some(8 << 20), None, None]);
    }
}
