//! CPU time that counters have and samples do not, from the file to the profile.

use std::cell::Cell;
use std::collections::BTreeMap;

use perf_data::attr::flag;
use perf_data::encode::{self, CounterValue, SampleId};
use perf_data::format::event_type;

use crate::analyze::fixture::{file_with, metadata};
use crate::analyze::{Dimensions, Options, analyze};
use crate::hardware::Method;
use crate::profile::Profile;
use crate::recording::energy::CpuTimes;
use crate::recording::metadata::{Metadata, Target};
use crate::recording::{Recording, own_events};
use crate::units::{Nanoseconds, Timestamp};

/// A command that is sampled on two CPUs for 500 ms, each of them busy with it all the time; what was counted of it on a third
/// is so many parts of the time.
fn recorded(on_third: f64) -> Profile {
    let command = Target::Command { argv: vec!["app".to_owned()], pid: 50 };
    let metadata = Metadata { target: command, system_wide_samples: false, ..metadata() };
    let stacks: Vec<Vec<u64>> = (0..1000).map(|number| vec![1, number % 7]).collect();
    let file = file_with(
        &stacks,
        metadata,
        |_| true,
        |time, records| {
            let passed = Nanoseconds::from_nanos(time.as_nanos() - 1_000_000_000);
            let third = Nanoseconds::from_nanos((passed.as_nanos() as f64 * on_third) as u64);
            let busy = vec![(0, passed), (1, passed), (2, third)];
            let times = CpuTimes { recorder: Nanoseconds::ZERO, busy: busy.clone() };
            own_events::cpu_times_with_target(&times, &busy, time, records).expect("short");
        },
    );
    let dimensions = Dimensions { stacks: true, threads: true, cpus: true };
    let options = Options { dimensions, ..Options::default() };
    let profile = analyze(&Recording::from_bytes(file).expect("a recording"), &options);
    assert!(profile.domains.iter().all(|domain| domain.balance.holds()), "{:?}", profile.domains);
    profile
}

/// What no sample tells of: milliseconds on each CPU, and joules of all.
fn unseen(profile: &Profile) -> (BTreeMap<u32, f64>, f64) {
    let (mut time, mut joules) = (BTreeMap::new(), 0.0);
    for (index, cell) in profile.cells.iter().enumerate() {
        let address = profile.stacks.innermost(cell.stack).expect("each sample has an address");
        let module = profile.addresses[address.0 as usize].module;
        if profile.modules[module.0 as usize].path.contains("not sampled") {
            *time.entry(cell.cpu.expect("CPUs are told apart")).or_insert(0.0) +=
                cell.time.as_secs_f64() * 1e3;
            joules += profile.joules(index)[0].as_joules();
            let thread = &profile.threads[cell.thread.0 as usize];
            assert_eq!((thread.ids(), thread.name.as_str()), (None, "[short processes]"));
            assert_eq!(thread.process_title(), thread.title());
        }
    }
    (time, joules)
}

#[test]
fn time_without_samples_is_the_programs_where_it_was_spent() {
    let profile = recorded(1.0);
    let (by_cpu, joules) = unseen(&profile);
    let time: f64 = by_cpu.values().sum();
    // 500 ms on the third CPU, less 2 % of what was sampled on the others and 20 ms.
    assert!((455.0..470.0).contains(&time) && by_cpu[&2] > 0.98 * time, "{by_cpu:?}");
    // As much as the time is of that of all three: a third of what the package gives to functions.
    let of_functions = profile.domains[0].balance.attributed.as_joules();
    assert!((joules / of_functions - time / (1000.0 + time)).abs() < 0.05, "{joules} of {of_functions} J");
    assert_eq!(profile.events[0].samples, 1000, "they are no samples");
}

#[test]
fn clocks_that_differ_a_little_hide_nothing() {
    assert_eq!(unseen(&recorded(0.05)), (BTreeMap::new(), 0.0));
}

/// Each CPU is busy with a program for a tenth longer than its samples tell, and tasks without a sample are started on the second one.
#[test]
fn what_short_processes_cannot_have_run_is_that_of_the_code_around() {
    let command = Target::Command { argv: vec!["app".to_owned()], pid: 50 };
    let metadata = Metadata { target: command, system_wide_samples: false, ..metadata() };
    let stacks: Vec<Vec<u64>> = (0..1000).map(|number| vec![1, number % 7]).collect();
    let tasks = Cell::new(100);
    let mut file = file_with(
        &stacks,
        metadata,
        |_| true,
        |time, records| {
            let passed = Nanoseconds::from_nanos((time.as_nanos() - 1_000_000_000) * 11 / 10);
            let busy = vec![(0, passed), (1, passed)];
            let times = CpuTimes { recorder: Nanoseconds::ZERO, busy: busy.clone() };
            own_events::cpu_times_with_target(&times, &busy, time, records).expect("short");
            let task = tasks.replace(tasks.get() + 1);
            let id = SampleId { pid: task, tid: task, time, cpu: 1, id: 1 };
            encode::fork((task, task), (50, 50), &id, records).expect("short");
        },
    );
    let usual = flag::SAMPLE_ID_ALL | flag::KSYMBOL | flag::USE_CLOCKID;
    let at = file.windows(8).position(|bytes| bytes == usual.to_le_bytes()).expect("the clock's flags");
    file[at..at + 8].copy_from_slice(&(usual | flag::TASK).to_le_bytes());
    let dimensions = Dimensions { stacks: true, threads: true, cpus: true };
    let options = Options { dimensions, ..Options::default() };
    let profile = analyze(&Recording::from_bytes(file).expect("a recording"), &options);
    assert!(profile.domains.iter().all(|domain| domain.balance.holds()), "{:?}", profile.domains);
    let (short, joules) = unseen(&profile);
    // A sample stands for a millisecond: no task can have run for longer without one.
    let most = f64::from(tasks.get() - 100);
    let all: f64 = profile.cells.iter().map(|cell| cell.time.as_secs_f64() * 1e3).sum();
    let on = |cpu| short.get(&cpu).copied().unwrap_or(0.0);
    println!("{most} tasks: {short:?} ms, {joules} J; {all} ms of 1100 ms");
    assert!(on(0) == 0.0 && on(1) > 0.5 * most && on(1) <= most, "{short:?} of {most}");
    // All that is known is told, less 2 % and 20 ms in which clocks may differ.
    assert!((1055.0..1070.0).contains(&all), "{all}");
    assert_eq!(profile.events[0].samples, 1000, "they are no samples");
}

/// Samples of an event that tells no time.
#[test]
fn joules_of_what_tells_no_time_are_nobodys() {
    let stacks: Vec<Vec<u64>> = (0..200).map(|number| vec![1, number % 7]).collect();
    let mut file = file_with(&stacks, metadata(), |_| true, |_, _| ());
    const PAGE_FAULTS: u64 = 2;
    let attributes = u64::from_le_bytes(file[24..32].try_into().expect("eight bytes")) as usize;
    file[attributes + 8..attributes + 16].copy_from_slice(&PAGE_FAULTS.to_le_bytes());
    let profile = analyze(&Recording::from_bytes(file).expect("a recording"), &Options::default());
    let division = profile.division.as_ref().expect("measured joules");
    assert_eq!(division.in_place_of_time.as_deref(), Some("cpu-clock"), "so it is called in the file");
    assert!(profile.errors.is_none(), "nobody knows how wrong they are");
    let told = |warning: &&String| warning.starts_with("no event of this recording tells time");
    let warning = profile.warnings.iter().find(told).expect("a warning");
    assert!(warning.contains("Record time as well: -e cpu-clock,") && !warning.contains("  "), "{warning}");
}

/// The same samples, of cycles, beside what is written of the event's counters, by CPU, whenever the meters are read.
fn counted(of_counters: impl Fn(u32, Timestamp) -> Option<CounterValue>, task: u32) -> Profile {
    counted_beside(metadata(), of_counters, task, |_, _| ())
}

/// The same with other records before them.
fn counted_beside(
    metadata: Metadata,
    of_counters: impl Fn(u32, Timestamp) -> Option<CounterValue>,
    task: u32,
    beside: impl Fn(Timestamp, &mut Vec<u8>),
) -> Profile {
    let stacks: Vec<Vec<u64>> = (0..1000).map(|number| vec![1, number % 7]).collect();
    let mut file = file_with(
        &stacks,
        metadata,
        |_| true,
        |time, records| {
            beside(time, records);
            for cpu in [0, 1] {
                let id = SampleId { pid: task, tid: task, time, cpu, id: 1 + u64::from(cpu) };
                if let Some(value) = of_counters(cpu, time) {
                    encode::read(&value, &id, records).expect("short");
                }
            }
        },
    );
    // The event is a clock, which is not held against its counter; of hardware its number is that of cycles.
    let attributes = u64::from_le_bytes(file[24..32].try_into().expect("eight bytes")) as usize;
    file[attributes..attributes + 4].copy_from_slice(&event_type::HARDWARE.to_le_bytes());
    let dimensions = Dimensions { stacks: true, threads: true, cpus: true };
    let options = Options { dimensions, ..Options::default() };
    let profile = analyze(&Recording::from_bytes(file).expect("a recording"), &options);
    assert!(profile.domains.iter().all(|domain| domain.balance.holds()), "{:?}", profile.domains);
    profile
}

const ALL_TASKS: u32 = u32::MAX;

fn said_of_counts(profile: Profile) -> Vec<String> {
    profile.warnings.into_iter().filter(|warning| warning.contains("samples of event")).collect()
}

/// Counts, and package joules, of the cells of a CPU.
fn of_cpu(profile: &Profile, cpu: u32) -> (u64, f64) {
    let cells = profile.cells.iter().enumerate().filter(|(_, cell)| cell.cpu == Some(cpu));
    cells.fold((0, 0.0), |(count, joules), (index, cell)| {
        (count + cell.count, joules + profile.joules(index)[0].as_joules())
    })
}

/// Samples for half of what the two counters of the event counted, which the recorder says at the end alone.
#[test]
fn counts_that_no_sample_stands_for_are_told() {
    let told = |value: u64| {
        let is_written = Cell::new(0);
        let at_once = |_, _| {
            is_written.set(is_written.get() + 1);
            (is_written.get() <= 2).then_some(CounterValue {
                value,
                time_enabled: 1,
                time_running: 1,
                lost: None,
            })
        };
        said_of_counts(counted(at_once, ALL_TASKS))
    };
    // 500 samples of a million on each CPU.
    let half = told(1_000_000_000);
    assert!(half.len() == 1 && half[0].contains(" stand for 50 % of what its counters counted"), "{half:?}");
    assert!(half[0].contains("nothing tells what ran then"), "{half:?}");
    assert_eq!(told(500_600_000), Vec::<String>::new());
}

/// One CPU's counter goes on twice as fast as its samples from half of the time on.
#[test]
fn samples_stand_for_what_their_cpu_counted_meanwhile() {
    let value = |cpu: u32, time: Timestamp| {
        let passed = time.as_nanos() - 1_000_000_000;
        let value = passed + if cpu == 1 { passed.saturating_sub(250_000_000) } else { 0 };
        Some(CounterValue { value, time_enabled: passed, time_running: passed, lost: None })
    };
    let profile = counted(value, ALL_TASKS);
    let [(first, joules), (second, more_joules)] = [0, 1].map(|cpu| of_cpu(&profile, cpu));
    assert_eq!(first, 500_000_000);
    // Less the period that may be under way.
    assert!((747_000_000..=750_000_000).contains(&second), "{second}");
    assert_eq!(profile.events[0].count, first + second);
    // Halves of what the package took in the first half of the time, and a third and two thirds in the second.
    assert!((more_joules / joules - 7.0 / 5.0).abs() < 0.03, "{more_joules} J beside {joules} J");
    let said = said_of_counts(profile);
    assert!(said.len() == 1 && said[0].contains("are 80 % of what happened"), "{said:?}");
}

/// Of one task, whose event had a counter for half of the time.
#[test]
fn samples_of_an_event_that_took_turns_stand_for_all_of_the_time() {
    let value = |_, time: Timestamp| {
        let passed = time.as_nanos() - 1_000_000_000;
        Some(CounterValue { value: passed, time_enabled: 4 * passed, time_running: passed, lost: None })
    };
    let profile = counted(value, 50);
    assert_eq!([0, 1].map(|cpu| of_cpu(&profile, cpu).0), [1_000_000_000; 2]);
    assert_eq!(profile.events[0].count, 2_000_000_000);
    let said = said_of_counts(profile);
    assert!(said.len() == 1 && said[0].contains("are 50 % of what happened"), "{said:?}");
}

/// A shell that from half of the time on starts thirty processes of a sixth of a period each every twenty milliseconds: on
/// the second CPU a fifth of what ran then.
#[test]
fn short_processes_have_what_the_programs_counters_have_more() {
    let command = Target::Command { argv: vec!["app".to_owned()], pid: 50 };
    let shell = |method| {
        let mut metadata = Metadata { target: command.clone(), system_wide_samples: false, ..metadata() };
        metadata.domains.iter_mut().for_each(|domain| domain.method = method);
        metadata
    };
    let (half, step) = (1_250_000_000, 20_000_000);
    let steps = |time: Timestamp| time.as_nanos().saturating_sub(half) / step;
    let value = |cpu: u32, time: Timestamp| {
        let sampled = (time.as_nanos() - 1_000_000_000) / 1_000_000 * 1_000_000;
        let short = 5_000_000 * steps(time);
        let value = sampled + if cpu == 1 { short } else { 0 };
        // On both CPUs as long as the program ran on any.
        Some(CounterValue { value, time_enabled: 2 * sampled + short, time_running: value, lost: None })
    };
    let forks = |time: Timestamp, records: &mut Vec<u8>| {
        let before = Timestamp::from_nanos(time.as_nanos() - step);
        for number in 30 * steps(before)..30 * steps(time) {
            let pid = 1000 + number as u32;
            let id = SampleId { pid, tid: pid, time, cpu: 1, id: 2 };
            encode::fork((pid, pid), (50, 50), &id, records).expect("short");
        }
    };
    for method in [Method::Measured, Method::Estimated] {
        let profile = counted_beside(shell(method), value, 50, forks);
        let of_row = |index: &usize| {
            let address = profile.stacks.innermost(profile.cells[*index].stack).expect("each has an address");
            let module = profile.addresses[address.0 as usize].module;
            profile.modules[module.0 as usize].path.contains("not sampled")
        };
        let row: Vec<usize> = (0..profile.cells.len()).filter(of_row).collect();
        let counts: u64 = row.iter().map(|index| profile.cells[*index].count).sum();
        let time: f64 = row.iter().map(|index| profile.cells[*index].time.as_secs_f64()).sum();
        let joules: f64 = row.iter().map(|index| profile.joules(*index)[0].as_joules()).sum();
        // Twelve times 5 M, less what two threads may have counted after their last samples.
        assert!((59_000_000..60_000_000).contains(&counts), "{counts}");
        assert!((time - counts as f64 * 1e-9).abs() < 1e-6, "a nanosecond for each: {time}");
        assert!(
            row.iter()
                .all(|index| profile.cells[*index].samples == 0 && profile.cells[*index].cpu == Some(1))
        );
        // Of what the meter counted from 260 ms on, as much as the counts are of all: 4 of 44 M in the first twenty
        // milliseconds, 5 of 45 M in each of the eleven others.
        let counted = |seconds: f64| seconds + 0.01 * (seconds * 300.0).sin();
        let functions = profile.domains[0].balance.attributed.as_joules();
        let from_then_on = functions * (1.0 - counted(0.26) / counted(0.5));
        let expected = from_then_on * (4.0 / 44.0 + 11.0 * 5.0 / 45.0) / 12.0;
        assert!((joules / expected - 1.0).abs() < 0.01, "{joules} for {expected} J, {method:?}");
        assert_eq!(said_of_counts(profile), Vec::<String>::new());
    }
}
