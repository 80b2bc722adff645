//! How far the address of a sample may lie from the instruction that it stands for.

use perf_data::attr::EventAttr;
use perf_data::format::event_type;

/// Configurations of the software events that are timers: cpu-clock and task-clock.
const TIMERS: [u64; 2] = [0, 1];

/// What the addresses of an event's samples mean, in words: after perf_event_open(2) and `precise_ip` there.
pub fn of_event(attr: &EventAttr) -> &'static str {
    if attr.kind == event_type::SOFTWARE {
        return if TIMERS.contains(&attr.config) {
            "a timer: the address is the one that its interrupt came back to, which is behind the costly instruction"
        } else {
            "a software event: the address is the one at which the kernel counted it"
        };
    }
    match attr.precise_ip() {
        0 => "precise_ip 0: the address skids, often by some instructions, behind the one that was counted",
        1 => "precise_ip 1: the address skids by a constant, in most cases to the next instruction",
        2 => "precise_ip 2: the address was asked not to skid",
        _ => "precise_ip 3: the address does not skid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_and_levels_are_told_apart() {
        let mut attr = EventAttr { kind: event_type::SOFTWARE, config: 0, ..EventAttr::default() };
        let timer = of_event(&attr);
        attr.config = 2;
        let faults = of_event(&attr);
        attr.kind = 0;
        assert!(
            timer.contains("timer")
                && faults.contains("software")
                && of_event(&attr).contains("skids, often")
        );
    }
}
