//! Whole texts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::profile::AddressId;
use crate::units::Nanoseconds;

/// The count of each stack, its frames apart by `;`, inlined ones marked.
fn stacks(text: &TextProfile) -> BTreeMap<String, u64> {
    let TextProfile { profile, symbols, .. } = text;
    let names = |address: AddressId| {
        let name = |frame: &crate::symbolize::SourceFrame| {
            let mark = if frame.inlined { "+" } else { "" };
            format!("{}{mark}", symbols.function(frame.function).name)
        };
        symbols.frames(address).iter().map(name).collect::<Vec<_>>().join(";")
    };
    let mut counts = BTreeMap::new();
    for cell in &profile.cells {
        let mut frames: Vec<String> = profile.stacks.frames(cell.stack).map(names).collect();
        frames.reverse();
        *counts.entry(frames.join(";")).or_default() += cell.count;
    }
    counts
}

fn parsed(text: &str) -> TextProfile {
    read(text.as_bytes(), TextOptions::default()).expect(text)
}

#[test]
fn samples_of_perf_script_become_cells() {
    let text = parsed(
        "# nrcpus online : 4\n\
         app 10/11 [002] 1.000001:  1000000 task-clock:u: \n\
         \t  30 inner (inlined)\n\
         \t  30 work(int)+0x10 (/bin/app)\n\
         \t  20 main+0x4 (/bin/app)\n\
         \n\
         app 10/11 [002] 1.001001:  1000000 task-clock:u: \n\
         \t  31 inner (inlined)\n\
         \t  31 work(int)+0x11 (/bin/app)\n\
         \t  20 main+0x4 (/bin/app)\n\
         what is this\n\
         \n\
         app 10/12 [000] 1.5:  7 cycles:u:  ffffffff12 [unknown] ([kernel.kallsyms])\n",
    );
    let expected = [("[kernel.kallsyms]", 7), ("main;work;inner+", 2_000_000)];
    assert_eq!(stacks(&text), expected.map(|(stack, count)| (stack.to_owned(), count)).into());
    let TextProfile { kind, profile, cpus, .. } = text;
    assert_eq!((kind, cpus, profile.cells.len(), profile.threads.len()), (TextKind::PerfScript, 4, 2, 2));
    assert_eq!(profile.cells[0].time, Nanoseconds::from_nanos(2_000_000));
    assert_eq!(profile.cells[1].time, Nanoseconds::ZERO, "cycles are no time");
    assert_eq!(profile.duration, Nanoseconds::from_nanos(499_999_000));
    assert_eq!(profile.events.iter().map(|event| event.samples).collect::<Vec<_>>(), [2, 1]);
    assert!(profile.warnings[1].contains("line 11"), "{:?}", profile.warnings);
}

#[test]
fn time_that_two_clocks_count_counts_once() {
    let seconds = |events: &[&str]| {
        let sample =
            |event: &&str| format!("app 1/1 [000] 1.5:  1000000 {event}: \n\t  20 main (/bin/app)\n\n");
        let text = parsed(&events.iter().map(sample).collect::<String>());
        let nanos: u64 = text.profile.cells.iter().map(|cell| cell.time.as_nanos()).sum();
        (nanos, text.profile.warnings.iter().any(|warning| warning.starts_with("another clock counts")))
    };
    assert_eq!(seconds(&["cpu-clock", "task-clock"]), (1_000_000, true));
    assert_eq!(seconds(&["cpu-clock:u", "cpu-clock:k"]), (2_000_000, false));
    assert_eq!(seconds(&["cpu-clock:u", "cpu-clock:k", "task-clock:u"]), (2_000_000, true));
    assert_eq!(seconds(&["cpu-clock:u", "task-clock:uk", "page-faults"]), (1_000_000, true));
}

#[test]
fn how_many_cpus_there_are_is_told_or_guessed() {
    let sample = "app 1/1 [002] 1.5:  1000000 cpu-clock: \n\t  20 main (/bin/app)\n\n";
    let of = |text: &str| {
        let TextProfile { cpus, cpus_are_told, .. } = parsed(text);
        (cpus, cpus_are_told)
    };
    assert_eq!(of(sample), (3, false));
    assert_eq!(of(&format!("# nrcpus online : 8\n{sample}")), (8, true));
}

#[test]
fn what_eprof_writes_beside_samples_is_no_sample() {
    let text = parsed(
        "sh 7/7 [000] 1.000000:          1 eprof/metadata/: \n\
         \t BPF output: 0000: 7b 22 66 6f  {\"fo\n\
         \t             0008: 72 6d 61 74  rmat\n\
         \n\
         sh 7/7 [001] 1.000001:          1 energy/package-0/: \n\
         \t BPF output: 0000: 7b 22 66 6f  ....\n\
         sh 7/7 [001] 1.001000:    1000000 cpu-clock: \n\
         \t  20 main+0x4 (/bin/app)\n\
         \n",
    );
    assert_eq!(stacks(&text), [("main".to_owned(), 1_000_000)].into());
    assert_eq!(text.profile.events.len(), 1, "{:?}", text.profile.events);
}

#[test]
fn collapsed_stacks_weigh_what_they_say() {
    let text = parsed("main;work 12\nmain;work;f_[i] 3\n# comment\nmain 1.6\nmain;sys_[k] 2\n\n");
    let expected = [("main", 2), ("main;sys", 2), ("main;work", 12), ("main;work;f+", 3)];
    assert_eq!(stacks(&text), expected.map(|(stack, count)| (stack.to_owned(), count)).into());
    assert_eq!(text.profile.events[0].samples, 19);
}

#[test]
fn an_exported_estimate_does_not_pass_for_samples() {
    let text = parsed("[estimated];main;a 100\n[estimated];main;b 300\n");
    assert_eq!(text.profile.events[0].name, "estimated microjoules");
    assert!(text.profile.warnings.iter().any(|warning| warning.contains("microjoules of an estimate")));
}

#[test]
fn weights_that_cannot_be_added_up_are_cut_off() {
    let text = parsed(&format!("a {max}\nb {max}\nc 1\n", max = u64::MAX));
    assert_eq!(stacks(&text)["a"], 1 << 62);
    assert_eq!(text.profile.events[0].samples, 1 << 62);
    assert!(text.profile.warnings[1].contains("cut off"), "{:?}", text.profile.warnings);
}

#[test]
fn samples_of_simpleperf_have_their_callchain() {
    let text = parsed(
        "sample:\n  event_type: cpu-cycles\n  time: 5\n  event_count: 25\n  thread_id: 7\n  thread_name: a b\n  \
         vaddr_in_file: 5e\n  file: /system/lib64/libc.so\n  symbol: __epoll_pwait\n  callchain:\n    \
         vaddr_in_file: 18\n    file: /system/lib64/libx.so\n    symbol: libx.so[+18]\nlost_situation:\n  \
         lost_count: 3\n",
    );
    assert_eq!(stacks(&text), [("[libx.so];__epoll_pwait".to_owned(), 25)].into());
    assert_eq!((text.profile.threads[0].name.as_str(), text.profile.threads[0].tid), ("a b", 7));
}

#[test]
fn compilers_of_java_say_what_they_inlined() {
    let text = parsed(
        "java 1 2.5: cycles:\n\t12 Lorg/a/B;::c->Lorg/a/D;::e (/tmp/perf-1.map)\n\
         \t13 Foo::operator->(int) (/usr/lib/x.so)\n\n",
    );
    assert_eq!(stacks(&text), [("Foo::operator->;org/a/B;::c;org/a/D;::e+".to_owned(), 1)].into());
}

#[test]
fn what_is_no_profile_is_refused_without_being_read() {
    let endless = std::io::repeat(b'y').chain(&b""[..]);
    assert!(matches!(read(endless, TextOptions::default()), Err(TextError::Unknown)));
    assert!(matches!(read(&b""[..], TextOptions::default()), Err(TextError::Empty)));
}

proptest! {
    /// Every sample is somewhere, whatever its frames are.
    #[test]
    fn no_sample_is_lost(stacks in prop::collection::vec(prop::collection::vec(0u8..6, 0..8), 1..20)) {
        let mut text = String::new();
        for stack in &stacks {
            text += "app 10/11 [002] 1.000001:  5 cycles: \n";
            for frame in stack {
                text += match frame {
                    0 => "\t 10 f (inlined)\n",
                    1 => "\t 11 g (/bin/app)\n",
                    2 => "\t 12 [unknown] (/bin/app)\n",
                    3 => "\t 13 h+0x3 ([kernel.kallsyms])\n",
                    4 => "\t 14 k\n",
                    _ => "nonsense\n",
                };
            }
            text += "\n";
        }
        let found = parsed(&text);
        let count: u64 = self::stacks(&found).values().sum();
        prop_assert_eq!(count, 5 * stacks.len() as u64);
        prop_assert_eq!(found.profile.events[0].samples, stacks.len() as u64);
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,300}") {
        let _ = read(text.as_bytes(), TextOptions::default());
    }
}
