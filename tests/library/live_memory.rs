//! What is kept of a machine that is watched for a day does not grow with the day: windows of a made up stream of a thousand
//! short processes a second, at many times its own speed.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File};
use std::time::Instant;

use eprof::analyze::{Dimensions, ModelChoice};
use eprof::hardware::{CoreKind, CpuInfo, DomainInfo, DomainKind, MachineInfo, Method, Role};
use eprof::live::{CutOptions, Engine, EngineOptions, Follower, Footprint, RunningTotals, Window};
use eprof::recording::energy::{CpuTimes, EnergyReading};
use eprof::recording::metadata::{EventInfo, METADATA_FORMAT, Metadata, MetersRead, Target};
use eprof::recording::own_events;
use eprof::report::{Grouping, Options as ReportOptions, Report};
use eprof::units::{Joules, Nanoseconds, Timestamp};
use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, MappingFields, SampleFields, SampleId, TRAILER_FIELDS};
use perf_data::format::{event_type, record_type, sample_type};
use perf_data::record::CpuMode;
use perf_data::{EventDesc, PerfDataWriter};

const CPUS: u32 = 4;
const PROCESSES_A_SECOND: u64 = 1_000;
/// Programs that are run again and again.
const PROGRAMS: u64 = 200;
/// A server's threads that come, and go, in a second.
const THREADS_A_SECOND: u64 = 50;
/// Of so many ends of threads and processes one is lost, as where a ring is full.
const ONE_END_IS_LOST_OF: u64 = 100;
const SHELL: u32 = 10;
const SERVER: u32 = 11;
/// Process ids begin anew behind this one, as Linux has them.
const MOST_PIDS: u64 = 4_000_000;
/// Windows of so long a time are kept.
const RECENT: Nanoseconds = Nanoseconds::from_millis(10_000);
const CODE: u64 = 0x40_0000;

/// A machine's stream, second by second.
struct Stream {
    writer: PerfDataWriter<File>,
    processes_a_second: u64,
    second: u64,
    processes: u64,
    threads: u64,
}

impl Stream {
    fn begin(processes_a_second: u64) -> (Self, Follower) {
        let (file, follower) = Follower::create().expect("memory");
        let domains = [DomainInfo {
            refresh: Some(Nanoseconds::from_millis(1)),
            ..DomainInfo::new("package-0", DomainKind::Package, "power PMU", Method::Measured)
        }];
        let mut events = vec![clock()];
        events.extend(own_events::descriptions(&domains));
        let mut writer = PerfDataWriter::create(file, events).expect("memory");
        let mut records = Vec::new();
        own_events::metadata(&metadata(&domains), time(0, 0), &mut records).expect("it fits");
        for (pid, name) in [(SHELL, &b"shell"[..]), (SERVER, b"server")] {
            encode::fork((pid, pid), (1, 1), &id(pid, pid, Timestamp::default()), &mut records)
                .expect("it fits");
            encode::comm(pid, pid, name, true, &id(pid, pid, Timestamp::default()), &mut records)
                .expect("it fits");
        }
        writer.write_raw(&records).expect("memory");
        writer.commit().expect("memory");
        (Self { writer, processes_a_second, second: 0, processes: 0, threads: 0 }, follower)
    }

    /// Writes the next second.
    fn next(&mut self) {
        let mut records = Vec::new();
        let steps = 100;
        for step in 0..steps {
            let now = time(self.second, step * 1_000_000_000 / steps);
            let energy = Joules::from_joules(20.0 * (self.second as f64 + step as f64 / steps as f64));
            let raw = self.second * steps + step;
            let reading = EnergyReading { energy, raw, uncertainty: Nanoseconds::ZERO };
            own_events::energy(0, &reading, now, 0, &mut records).expect("it fits");
            if step.is_multiple_of(10) {
                let busy = Nanoseconds::from_nanos(now.as_nanos());
                let busy = (0..CPUS).map(|cpu| (cpu, busy)).collect();
                let times = CpuTimes { recorder: Nanoseconds::ZERO, busy };
                own_events::cpu_times(&times, now, &mut records).expect("it fits");
            }
            for number in self.processes_by(step, steps)..self.processes_by(step + 1, steps) {
                self.process(now, number as u32 % CPUS, &mut records);
            }
            if step.is_multiple_of(steps / THREADS_A_SECOND) {
                self.thread(now, &mut records);
            }
        }
        encode::finished_round(&mut records);
        self.writer.write_raw(&records).expect("memory");
        self.writer.commit().expect("memory");
        self.second += 1;
    }

    /// How many processes of a second have come before one of its steps.
    fn processes_by(&self, step: u64, steps: u64) -> u64 {
        self.processes_a_second * step / steps
    }

    /// A process of the shell that lives for a millisecond. One of ten is of a program that was built just now.
    fn process(&mut self, now: Timestamp, cpu: u32, records: &mut Vec<u8>) {
        self.processes += 1;
        let number = self.processes;
        let pid = (100_000 + number % MOST_PIDS) as u32;
        let at =
            |micros: u64| SampleId { cpu, ..id(pid, pid, now + Nanoseconds::from_nanos(micros * 1_000)) };
        encode::fork((pid, pid), (SHELL, SHELL), &at(0), records).expect("it fits");
        let program = number % PROGRAMS;
        let (name, path, inode) = match number % 10 {
            0 => (format!("built-{number}"), format!("/tmp/build/{number}/a.out"), 1_000_000 + number),
            _ => (format!("tool-{program}"), format!("/nowhere/bin/tool-{program}"), 100 + program),
        };
        encode::comm(pid, pid, name.as_bytes(), true, &at(10), records).expect("it fits");
        for (place, (path, inode)) in
            [(path.as_str(), inode), ("/nowhere/lib/libc.so.6", 1)].into_iter().enumerate()
        {
            let start = CODE + place as u64 * 0x1_0000_0000;
            let mapping = MappingFields {
                pid,
                tid: pid,
                addresses: start..start + 0x20_0000,
                file_offset: 0,
                inode: (8, 1, inode),
                protection: 5,
                flags: 2,
                path: path.as_bytes(),
            };
            encode::mmap2(&mapping, &at(20), records).expect("it fits");
        }
        sample(pid, pid, cpu, now + Nanoseconds::from_nanos(500_000), CODE + number % 97 * 0x1000, records);
        if !number.is_multiple_of(ONE_END_IS_LOST_OF) {
            exit((pid, pid), (SHELL, SHELL), &at(1_000), records);
        }
    }

    /// A thread of the server comes, and the one of a second ago goes.
    fn thread(&mut self, now: Timestamp, records: &mut Vec<u8>) {
        self.threads += 1;
        let tid = |number: u64| (10_000_000 + number) as u32;
        let (new, old) = (tid(self.threads), tid(self.threads.saturating_sub(THREADS_A_SECOND)));
        let of = |tid| id(SERVER, tid, now);
        encode::fork((SERVER, new), (SERVER, SERVER), &of(SERVER), records).expect("it fits");
        encode::comm(SERVER, new, format!("worker-{}", self.threads).as_bytes(), false, &of(new), records)
            .expect("it fits");
        sample(SERVER, new, 0, now + Nanoseconds::from_nanos(1_000), CODE, records);
        if self.threads > THREADS_A_SECOND && !self.threads.is_multiple_of(ONE_END_IS_LOST_OF) {
            exit((SERVER, old), (SERVER, SERVER), &of(old), records);
        }
    }
}

fn time(second: u64, nanos: u64) -> Timestamp {
    Timestamp::from_nanos((second + 1) * 1_000_000_000 + nanos)
}

fn id(pid: u32, tid: u32, time: Timestamp) -> SampleId {
    SampleId { pid, tid, time, cpu: 0, id: 1 }
}

fn exit(who: (u32, u32), parent: (u32, u32), id: &SampleId, records: &mut Vec<u8>) {
    let start = records.len();
    // Of the same fields, under another number.
    encode::fork(who, parent, id, records).expect("it fits");
    records[start..start + 4].copy_from_slice(&record_type::EXIT.to_le_bytes());
}

fn sample(pid: u32, tid: u32, cpu: u32, time: Timestamp, ip: u64, records: &mut Vec<u8>) {
    let fields = SampleFields {
        id: 1,
        ip,
        mode: CpuMode::User,
        pid,
        tid,
        time,
        cpu,
        period: 1_000_000,
        callchain: &[-512i64 as u64, ip, CODE + 8],
        raw: &[],
    };
    encode::sample(clock().attr.sample_type, &fields, records).expect("it fits");
}

fn clock() -> EventDesc {
    EventDesc {
        name: "cpu-clock".to_owned(),
        attr: EventAttr {
            kind: event_type::SOFTWARE,
            config: 0,
            sample_period: 1_000_000,
            sample_type: TRAILER_FIELDS | sample_type::IP | sample_type::PERIOD | sample_type::CALLCHAIN,
            flags: flag::SAMPLE_ID_ALL,
            ..EventAttr::default()
        },
        ids: vec![1],
    }
}

fn metadata(domains: &[DomainInfo]) -> Metadata {
    let cpu = |cpu| CpuInfo { cpu, core: cpu, die: 0, package: 0, kind: CoreKind::Performance };
    Metadata {
        format: METADATA_FORMAT,
        eprof_version: "0.0.0".to_owned(),
        command_line: vec!["eprof".to_owned(), "top".to_owned()],
        target: Target::System,
        clock: "CLOCK_MONOTONIC".to_owned(),
        started_unix_ns: 4_000_000_000_000_000_000,
        recorder_pid: 1,
        system_wide_samples: true,
        machine: MachineInfo { cpus: (0..CPUS).map(cpu).collect(), ..MachineInfo::default() },
        domains: domains.to_vec(),
        events: vec![EventInfo {
            name: "cpu-clock".to_owned(),
            role: Some(Role::Clk),
            encoding: String::new(),
            joules_per_event: Default::default(),
            core_kind: CoreKind::Performance,
        }],
        warnings: Vec::new(),
        identity: None,
        meters: MetersRead::default(),
    }
}

/// What `eprof top` keeps: an engine, its last windows, and sums by row since the start.
struct Watcher {
    stream: Stream,
    engine: Engine,
    windows: VecDeque<Window>,
    by_function: RunningTotals,
    by_process: RunningTotals,
}

impl Watcher {
    fn begin(processes_a_second: u64) -> Self {
        let (stream, follower) = Stream::begin(processes_a_second);
        let options = EngineOptions {
            cut: CutOptions::default(),
            dimensions: Dimensions::ALL,
            model: ModelChoice::Auto,
            stored_model: None,
            kernel_cache: None,
            lines: false,
            keeps_files: true,
        };
        let engine = Engine::new(follower, options);
        let (by_function, by_process) = (RunningTotals::default(), RunningTotals::default());
        Self { stream, engine, windows: VecDeque::new(), by_function, by_process }
    }

    fn watch(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.stream.next();
            while let Some(window) = self.engine.next_window(false).expect("as it was written") {
                for (by, totals) in
                    [(Grouping::Function, &mut self.by_function), (Grouping::Process, &mut self.by_process)]
                {
                    let options = ReportOptions { by, inline: false, ..ReportOptions::default() };
                    totals.add(&Report::new(&window.profile, &window.symbols, &options).expect("a report"));
                }
                self.windows.push_back(window);
                // Where the analysis takes long, windows are longer.
                let time = |window: &Window| window.profile.duration;
                while self.windows.iter().skip(1).map(time).sum::<Nanoseconds>() >= RECENT {
                    self.windows.pop_front();
                }
            }
        }
    }

    fn kept(&self) -> (Footprint, usize, usize) {
        (self.engine.footprint(), self.by_function.rows().count(), self.by_process.rows().count())
    }
}

/// Megabytes of this process that lie in memory.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|size| size.parse::<f64>().ok()).expect("a number") / 1e3
}

#[test]
fn what_is_kept_does_not_grow_with_time() {
    let mut watcher = Watcher::begin(PROCESSES_A_SECOND);
    watcher.watch(8);
    let (before, ..) = watcher.kept();
    watcher.watch(24);
    let (after, functions, processes) = watcher.kept();
    println!("{before:?}\n{after:?}\n{functions} functions, {processes} processes");
    // Joules are those of the meter, whoever came and went.
    let measured = watcher.by_process.balance().measured.as_joules();
    let seconds = watcher.by_process.duration().as_secs_f64();
    assert!(
        seconds > 20.0 && (measured - 20.0 * seconds).abs() < 1e-6 * measured,
        "{measured} J in {seconds} s"
    );
    assert!(watcher.by_process.balance().holds());
    // Only what lost its end stays, up to a limit.
    let lost = watcher.stream.processes / ONE_END_IS_LOST_OF;
    assert!(after.processes as u64 <= lost + 64, "{after:?}, {lost} ends of processes were lost");
    assert!(after.bytes < 2 * before.bytes.max(1 << 20), "{before:?}, {after:?}");
    assert!(after.names as u64 <= lost + 4 * THREADS_A_SECOND, "{after:?}");
}

fn number_of(name: &str) -> Option<u64> {
    env::var(name).ok().and_then(|number| number.parse().ok())
}

/// `EPROF_HOURS=24 cargo test --release --test library a_day_of_windows -- --ignored --nocapture`; with fewer processes a second
/// (`EPROF_PROCESSES=20`) a day of windows takes minutes, not hours.
#[test]
#[ignore = "takes minutes: memory over hours of a made up machine"]
fn a_day_of_windows_takes_no_more_memory_than_its_first_hours() {
    let hours = number_of("EPROF_HOURS").unwrap_or(1);
    let parts = 12;
    let mut watcher = Watcher::begin(number_of("EPROF_PROCESSES").unwrap_or(PROCESSES_A_SECOND));
    watcher.watch(60);
    let mut sizes = Vec::new();
    for _ in 1..=parts {
        let began = Instant::now();
        watcher.watch(hours * 3_600 / parts);
        let size = resident();
        println!(
            "{:6.2} h, {} processes: {size:.1} MB, {:.0} times real speed; {:?}",
            watcher.stream.second as f64 / 3_600.0,
            watcher.stream.processes,
            (hours * 3_600 / parts) as f64 / began.elapsed().as_secs_f64(),
            watcher.kept()
        );
        sizes.push(size);
    }
    let (half, last) = (sizes[parts as usize / 2 - 1], sizes[parts as usize - 1]);
    assert!(last < half * 1.1 + 8.0, "{half:.1} MB after half of the time, {last:.1} MB after all of it");
}
