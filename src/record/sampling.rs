//! Opens what was asked for, or the next best that the kernel permits.

use std::io;
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::unistd::{Uid, User};

use crate::hardware::MachineInfo;
use crate::machine::permissions::Permissions;
use crate::machine::repair::Repairs;
use crate::machine::{Roots, resolve_event, topology};
use crate::process::file_limit;
use crate::record::attr::AttrSettings;
use crate::record::cgroup_names::CgroupNames;
use crate::record::counters::{Counters, OpenCounter, Refusal, Scope};
use crate::record::error::RecordError;
use crate::record::events::{ChosenEvents, choose_events, clock_instead};
use crate::record::frequency;
use crate::record::options::{CallGraph, ControlGroups, SamplingOptions, SamplingRate};
use crate::record::probe_program::ProbeProgram;
use crate::record::ring::page_size;
use crate::record::sampled_event::SampledEvent;
use crate::record::support::KernelSupport;

/// Bytes of a ring, if the kernel gives them. perf_event_mlock_kb is 516 by default: just this and a
/// page for the ring's head.
const RING_SIZE: usize = 512 * 1024;
/// The same where each sample brings a copy of its stack.
const RING_SIZE_WITH_STACKS: usize = 4 * 1024 * 1024;
/// A ring that is smaller than this may overrun at usual rates.
const SMALL_RING: usize = 64 * 1024;
/// What a reader by control group must know.
const NO_CGROUPS: &str = "the samples do not tell their control groups: this kernel has no PERF_SAMPLE_CGROUP, which \
                          came with Linux 5.7 and needs CONFIG_CGROUP_PERF";
/// Descriptors that the recorder needs besides its counters.
const OTHER_FILES: u64 = 64;

/// Counters that are ready to start.
#[derive(Debug)]
pub struct Sampling {
    /// What leads probed calls to their counters as long as it lives. It goes before these.
    _probe_program: Option<ProbeProgram>,
    /// The counters and their rings.
    pub counters: Counters,
    /// What they count.
    pub events: Vec<SampledEvent>,
    /// The kernel's own work is not sampled.
    pub exclude_kernel: bool,
    /// Who tells the paths of control groups, where samples tell their numbers.
    pub cgroups: Option<CgroupNames>,
    /// What had to be done without, and how to have it.
    pub warnings: Vec<String>,
    /// How the events were chosen.
    pub notes: Vec<String>,
}

/// Opens events where and how they are wanted.
struct Opener<'a> {
    roots: &'a Roots,
    cpus: &'a [u32],
    scope: &'a Scope,
    settings: AttrSettings,
    /// Probes, in addition to what is sampled.
    probes: &'a [SampledEvent],
    /// Tasks and mappings are followed while nothing is sampled, too.
    follows_apart: bool,
}

/// What an [`Opener`] opened.
struct Opened {
    counters: Counters,
    events: Vec<SampledEvent>,
    settings: AttrSettings,
}

impl Opener<'_> {
    fn open(&self, mut events: Vec<SampledEvent>, warnings: &mut Vec<String>) -> Result<Opened, RecordError> {
        let Self { roots, cpus, scope, settings, probes, follows_apart } = *self;
        if matches!(scope, Scope::System) {
            // A clock goes on while nothing runs; samples of the idle task would tell nothing and cost energy.
            events.iter_mut().filter(|event| event.is_clock()).for_each(SampledEvent::leave_out_idle);
        }
        add_tracking_event(roots, &mut events, cpus, follows_apart)?;
        events.extend(probes.iter().cloned());
        allow_files(&events, scope, cpus)?;
        let is_online = |cpu| topology::online(roots).is_ok_and(|online| online.contains(&cpu));
        let open = |settings: &AttrSettings| Counters::open(&events, scope, cpus, settings, is_online);
        let refusal = match open(&settings) {
            Ok(counters) => return Ok(Opened { counters, events, settings }),
            Err(refusal) => refusal,
        };
        if settings.exclude_kernel || !is_permission(&refusal.cause) {
            return Err(refused(roots, &events, refusal, scope));
        }
        let settings = AttrSettings { exclude_kernel: true, ..settings };
        // If that is refused too, the first refusal says more.
        let counters = open(&settings).map_err(|_| refused(roots, &events, refusal, scope))?;
        warnings.push(format!(
            "this user may not sample the kernel, so only the programs' own code was sampled; to change that: {}",
            Permissions::read(roots).cpu_wide_repairs().one_line()
        ));
        Ok(Opened { counters, events, settings })
    }
}

impl Sampling {
    /// Opens the events that are wanted for `scope`, and these probes. `on_exec`: the counters of a program start
    /// with its `exec`.
    ///
    /// # Errors
    /// Events that are not known or not to be had, and rights or memory that are missing.
    pub fn open(
        options: &SamplingOptions,
        roots: &Roots,
        machine: &MachineInfo,
        scope: &Scope,
        on_exec: bool,
        probes: &[SampledEvent],
    ) -> Result<Self, RecordError> {
        let cpus: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.cpu).collect();
        let ChosenEvents { mut events, notes, by_eprof } =
            choose_events(roots, machine, &options.events, options.rate, options.model.as_ref())?;
        let lowered = frequency::lower(roots, &mut events);
        let support = KernelSupport::probe();
        let settings = AttrSettings {
            call_graph: options.call_graph,
            exclude_kernel: options.user_only,
            enable_on_exec: on_exec,
            cgroups: options.cgroups != ControlGroups::Never && support.cgroups,
            support,
        };
        let follows_apart = options.duty.is_some();
        let opener = Opener { roots, cpus: &cpus, scope, settings, probes, follows_apart };
        let (mut warnings, mut notes): (Vec<String>, _) = (lowered.into_iter().collect(), notes);
        if !support.cgroups {
            match options.cgroups {
                ControlGroups::Never => {}
                ControlGroups::IfPossible => notes.push(NO_CGROUPS.to_owned()),
                ControlGroups::Asked => warnings.push(NO_CGROUPS.to_owned()),
            }
        }
        let opened = match opener.open(events, &mut warnings) {
            // Some virtual machines show a PMU that does not count.
            Err(error @ RecordError::EventNotSupported { .. }) if by_eprof => {
                warnings.push(format!("{error}; CPU time was sampled instead"));
                let mut clock = clock_instead(roots, options.rate)?;
                // What is said of it was said of the events that it stands for.
                frequency::lower(roots, &mut clock);
                opener.open(clock, &mut warnings)
            }
            other => other,
        };
        let Opened { mut counters, mut events, settings } = opened?;
        if counters.counters.is_empty() {
            return Err(RecordError::NothingToWatch);
        }
        if settings.exclude_kernel {
            events.iter_mut().for_each(name_user_only);
        }
        map_rings(&mut counters, options.call_graph, &mut warnings)?;
        let probe_program =
            ProbeProgram::attach(&events, &counters).map_err(RecordError::system("attaching the probes"))?;
        let AttrSettings { exclude_kernel, cgroups, .. } = settings;
        let first = counters.counters.first().map_or(0, OpenCounter::id);
        let cgroups = CgroupNames::find(roots, first).filter(|_| cgroups);
        Ok(Self { counters, events, exclude_kernel, cgroups, warnings, notes, _probe_program: probe_program })
    }

    /// Starts the counters. With `on_exec`, those of the program start with its `exec`, and only probes are left to
    /// start.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(&mut self, on_exec: bool) -> Result<(), RecordError> {
        match on_exec {
            true => self.counters.enable_untied().map_err(RecordError::system("starting the probes")),
            false => self.counters.enable().map_err(RecordError::system("starting the counters")),
        }
    }

    /// The id of some counter of the first event, for records that eprof makes in the kernel's place.
    pub fn first_id(&self) -> u64 {
        self.counters.counters.first().map_or(0, OpenCounter::id)
    }
}

/// Where no event counts on some CPU, an event that never happens tells of tasks and mappings there; everywhere, if it is to
/// go on while others rest.
fn add_tracking_event(
    roots: &Roots,
    events: &mut Vec<SampledEvent>,
    cpus: &[u32],
    everywhere: bool,
) -> Result<(), RecordError> {
    let counted = |cpu: &&u32| !everywhere && events.iter().any(|event| event.spec.counts_on(**cpu));
    let silent: Vec<u32> = cpus.iter().filter(|cpu| !counted(cpu)).copied().collect();
    if !silent.is_empty() {
        for mut spec in resolve_event(roots, "dummy:u")? {
            spec.cpus = Some(silent.clone());
            events.push(SampledEvent::new(spec, None, SamplingRate::Period(1)));
        }
    }
    Ok(())
}

/// An event is called as perf would call what it became.
fn name_user_only(event: &mut SampledEvent) {
    let modifiers = &mut event.spec.modifiers;
    if !modifiers.exclude_kernel && !event.spec.name.contains(':') {
        event.spec.name.push_str(":u");
    }
    modifiers.exclude_kernel = true;
}

fn map_rings(
    counters: &mut Counters,
    call_graph: CallGraph,
    warnings: &mut Vec<String>,
) -> Result<(), RecordError> {
    let wanted = match call_graph {
        CallGraph::Dwarf { .. } => RING_SIZE_WITH_STACKS,
        _ => RING_SIZE,
    };
    let smallest = 2 * page_size();
    let mut size = wanted;
    while let Err(cause) = counters.map_rings(size) {
        if size <= smallest {
            return Err(RecordError::RingMemory(cause));
        }
        size /= 2;
    }
    if size < SMALL_RING {
        warnings.push(format!(
            "the kernel gave rings of {} kB only, which may overrun; more: sudo sysctl \
             kernel.perf_event_mlock_kb=2048 (or end other recordings of this user)",
            size / 1024
        ));
    }
    Ok(())
}

/// Raises the limit of open files as far as the counters need.
fn allow_files(events: &[SampledEvent], scope: &Scope, cpus: &[u32]) -> Result<(), RecordError> {
    let tasks = scope.counters_per_cpu();
    let per_task: usize =
        events.iter().map(|event| cpus.iter().filter(|&&cpu| event.spec.counts_on(cpu)).count()).sum();
    let probes = events.iter().filter(|event| event.probe.is_some()).count();
    // One more for each task, which keeps its events from its children's.
    let needed = ((per_task + 1) * tasks + probes) as u64 + OTHER_FILES;
    file_limit::raise_to(needed).map_err(|limit| RecordError::TooManyFiles {
        needed,
        events: events.len(),
        cpus: cpus.len(),
        tasks,
        limit,
    })
}

fn is_permission(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EACCES | Errno::EPERM))
}

/// What a refusal of the kernel means for the one who asked.
fn refused(roots: &Roots, events: &[SampledEvent], refusal: Refusal, scope: &Scope) -> RecordError {
    let Refusal { event, cause } = refusal;
    let event = events[event].spec.name.clone();
    if is_permission(&cause) {
        return RecordError::NotPermitted { event, cause, remedy: remedy(roots, scope) };
    }
    let hint = match cause.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => {
            "this machine has no such event; virtual machines often have no hardware events"
        }
        Some(Errno::EOPNOTSUPP) => "it cannot be sampled in this way; try --call-graph fp, or no :p",
        Some(Errno::ENOSYS) => "this kernel was built without perf events",
        Some(Errno::EBUSY) => "another program keeps the counters for itself",
        Some(Errno::EINVAL) => "the kernel takes this combination of event and options for wrong",
        Some(Errno::EMFILE | Errno::ENFILE) => "too many files are open; raise the limit with ulimit -n",
        _ => "see perf_event_open(2)",
    };
    RecordError::EventNotSupported { event, cause, hint }
}

/// How to get the right to sample, least privilege first.
fn remedy(roots: &Roots, scope: &Scope) -> String {
    let rights = Permissions::read(roots);
    let level = rights.paranoid.map_or("missing".to_owned(), |level| level.to_string());
    if let Scope::Tasks(tasks) = scope
        && rights.own_events()
        && let Some((task, owner)) = of_another_user(roots, tasks, rights.uid)
    {
        let ways = list(&rights.other_users_repairs());
        return format!(
            "process {task} is of {owner}, and this is another user; what permits to sample other users' processes:{ways}"
        );
    }
    let (is_permitted, repairs) = match scope {
        Scope::Tasks(_) => (rights.own_events(), rights.own_repairs()),
        Scope::ControlGroup(_) | Scope::System => (rights.cpu_wide_events(), rights.cpu_wide_repairs()),
    };
    match is_permitted {
        false => format!("perf_event_paranoid is {level}; what permits it:{}", list(&repairs)),
        true => {
            "perf_event_paranoid is not the reason. Within a container its filter of system calls must allow \
             perf_event_open (docker run --cap-add PERFMON)"
                .to_owned()
        }
    }
}

fn list(repairs: &Repairs) -> String {
    repairs.0.iter().map(|way| format!("\n  {}: {}", way.scope, way.commands.join(" && "))).collect()
}

/// The first of these tasks that is another user's, and whose.
fn of_another_user(roots: &Roots, tasks: &[u32], user: u32) -> Option<(u32, String)> {
    tasks.iter().find_map(|&task| {
        let owner = std::fs::metadata(roots.procfs.join(task.to_string())).ok()?.uid();
        (owner != user).then(|| {
            let name = User::from_uid(Uid::from_raw(owner)).ok().flatten().map(|user| user.name);
            (task, name.unwrap_or_else(|| format!("user {owner}")))
        })
    })
}
