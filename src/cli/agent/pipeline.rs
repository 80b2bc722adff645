//! What becomes of each window: counters, tables, and room for the next one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use eprof::hardware::Method;
use eprof::live::Window;
use eprof::machine::memory::resident;
use eprof::machine::{Roots, topology};
use eprof::report::export::Exported;
use eprof::report::store::recording_id;
use eprof::report::tree::TreeOptions;
use eprof::units::{Joules, Timestamp};

use super::alone::Alone;
use super::clocks::{Clocks, Event, WallClock, end, unix_seconds};
use super::folder::Folder;
use super::http::Server;
use super::log::Log;
use super::metrics::{Bounds, Format, MakePage, OwnCost, WindowJoules, render};
use super::push::Pushing;
use super::settings::{Asked, Listen, Settings};
use super::shared::Shared;

/// A meter that fell silent is not looked for more often than this.
const BETWEEN_SEARCHES: Duration = Duration::from_secs(300);
/// In what analysis says of them.
const LOST_RECORDS: &str = " records were lost (event ";
/// A machine that has so many control groups at once has no more room an hour later.
const BETWEEN_ROOM: Duration = Duration::from_secs(3_600);
/// Less is the difference of two roundings.
const LEAST_GAP: Duration = Duration::from_millis(1);
/// A window in which a meter has to move.
const LONG_ENOUGH: Duration = Duration::from_millis(900);

/// The page of the counters, for the server.
pub fn page(shared: &Arc<Mutex<Shared>>) -> MakePage {
    let shared = Arc::clone(shared);
    Arc::new(move |format: Format| {
        let resident_bytes = resident(&Roots::default());
        let counts = shared.lock().unwrap_or_else(PoisonError::into_inner).waiting.clone();
        // Counted for each page, and while nobody waits for the lock: it takes some milliseconds where there are many windows.
        let waiting = counts.now();
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        for (receiver, windows) in waiting {
            shared.metrics.sent(receiver).waiting = windows;
        }
        let cost = OwnCost {
            cpu_seconds: eprof::process::clocks::own_cpu_time().as_secs_f64(),
            resident_bytes,
            started: shared.started,
        };
        shared.is_recording.then(|| render(&shared.metrics, &cost, format))
    })
}

/// What is kept from one recording to the next one: everything but the recording.
pub struct Kept {
    asked: Asked,
    pub settings: Settings,
    pub folder: Folder,
    pub server: Option<Server>,
    pub pushing: Pushing,
    pub wall: WallClock,
    /// When the last window ended, on the recordings' clock.
    ended: Option<Timestamp>,
    /// When a silent meter was last looked for.
    searched: Option<Instant>,
    /// When a recording began anew for want of room for names.
    made_room: Option<Instant>,
    /// Held for other agents to see.
    _alone: Option<Alone>,
}

impl Kept {
    /// Of a folder that is open.
    pub fn new(
        asked: Asked,
        settings: Settings,
        folder: Folder,
        server: Option<Server>,
        pushing: Pushing,
        alone: Option<Alone>,
    ) -> Self {
        Self {
            asked,
            settings,
            folder,
            server,
            pushing,
            wall: WallClock::new(Clocks::now()),
            ended: None,
            searched: None,
            made_room: None,
            _alone: alone,
        }
    }
}

/// Takes the windows of one recording.
pub struct Pipeline {
    kept: Kept,
    /// Where what is kept goes afterwards.
    back: Arc<Mutex<Option<Kept>>>,
    shared: Arc<Mutex<Shared>>,
    log: Arc<Log>,
    /// Domains that have counted something in this recording.
    counted: BTreeSet<String>,
    warned: BTreeSet<String>,
    told_lost: u64,
    /// CPUs when the recording began.
    online: Option<Vec<u32>>,
}

impl Pipeline {
    /// Of a recording that begins now.
    pub fn new(
        kept: Kept,
        back: Arc<Mutex<Option<Kept>>>,
        shared: Arc<Mutex<Shared>>,
        log: Arc<Log>,
    ) -> Self {
        Self {
            kept,
            back,
            shared,
            log,
            counted: BTreeSet::new(),
            warned: BTreeSet::new(),
            told_lost: 0,
            online: topology::online(&Roots::default()).ok(),
        }
    }

    /// Gives back what is kept.
    pub fn leave(self) {
        *self.back.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.kept);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a window; `is_full`: names of what is new find no room. `true`: the recording is to begin anew.
    pub fn take(&mut self, window: &Window, is_full: bool) -> bool {
        self.tell_warnings(window);
        self.tell_lost();
        let started = self.place(window);
        self.tell_gap(window);
        let was_written = self.write(window, started);
        match WindowJoules::of(window) {
            Ok(joules) => {
                let mut shared = self.shared();
                shared.metrics.add(joules, was_written);
                shared.metrics.last_window = Some(end(started, window.profile.duration));
            }
            Err(error) => self.log.say("counting", format_args!("error: a window is not counted: {error}")),
        }
        self.kept.pushing.tell();
        self.prune();
        self.lacks_a_meter(window) || self.has_other_cpus() || (is_full && self.wants_room())
    }

    /// What a window warns of is said once in the agent's life, of its first words: figures differ.
    fn tell_warnings(&mut self, window: &Window) {
        const MOST: usize = 200;
        let Window { profile, symbols, .. } = window;
        let of_symbols = symbols.warnings.iter().map(ToString::to_string);
        for warning in profile.warnings.iter().cloned().chain(of_symbols) {
            // Told below by what the kernel says; between stretches of the duty nothing was lost by a full ring.
            if warning.contains(LOST_RECORDS) {
                continue;
            }
            let kind: String = warning.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect();
            if self.warned.len() < MOST && self.warned.insert(kind) {
                self.log.is_over("window");
                self.log.say("window", format_args!("warning: {warning}"));
            }
        }
    }

    /// Records that the kernel had no room for.
    fn tell_lost(&mut self) {
        let lost = self.shared().metrics.lost_records;
        if lost > self.told_lost {
            self.log.say(
                "lost",
                format_args!(
                    "warning: {} records were lost, {lost} so far: the rings were full; lower the rate (--frequency), or raise \
                     kernel.perf_event_mlock_kb",
                    lost - self.told_lost
                ),
            );
            self.told_lost = lost;
        }
    }

    /// What lies between this window and the one before: nothing but where a recording began anew.
    fn tell_gap(&mut self, window: &Window) {
        let profile = &window.profile;
        let Some(before) = self.kept.ended.replace(profile.start + profile.duration) else { return };
        let gap = Duration::from_nanos(profile.start.since(before).as_nanos());
        if gap >= LEAST_GAP {
            self.shared().metrics.unrecorded += gap;
            self.log.say(
                "gap",
                format_args!(
                    "until the recording had begun anew, {:.1} s were not recorded: they are in no window",
                    gap.as_secs_f64()
                ),
            );
        }
    }

    /// When the window began, and what the clocks did meanwhile.
    fn place(&mut self, window: &Window) -> SystemTime {
        let (started, events) = self.kept.wall.place(window.profile.start, Clocks::now());
        for event in events {
            match event {
                Event::Slept(slept) => {
                    self.shared().metrics.slept += slept;
                    self.log.say(
                        "sleep",
                        format_args!(
                            "the machine was suspended for {:.0} s, which are in no window",
                            slept.as_secs_f64()
                        ),
                    );
                }
                Event::Stepped(nanos) => {
                    self.shared().metrics.clock_steps += 1;
                    self.log.say(
                        "clock",
                        format_args!(
                            "the wall clock was set by {:+.3} s: windows from now on go by it, those before keep their times",
                            nanos as f64 * 1e-9
                        ),
                    );
                }
            }
        }
        started
    }

    fn write(&mut self, window: &Window, started: SystemTime) -> bool {
        let log = &self.log;
        let exported = Exported {
            profile: &window.profile,
            symbols: &window.symbols,
            started: Some(started),
            options: &TreeOptions::default(),
            warn: &|warning| log.say("sums", format_args!("warning: {warning}")),
        };
        let id = format!("{:010}-{:016x}", unix_seconds(started), recording_id(&window.profile));
        match self.kept.pushing.add(&id, &exported) {
            Ok(0) => {}
            Ok(removed) => self.given_up(removed as u64, "the oldest had to make room (--otlp-spool)"),
            Err(error) => self.given_up(1, &format!("{error:#}")),
        }
        let log = &self.log;
        if self.kept.folder.is_gone() {
            match Folder::open(&self.kept.settings.output) {
                Ok(folder) => {
                    self.kept.folder = folder;
                    log.say(
                        "gone",
                        format_args!(
                            "warning: {} was removed, and is made anew",
                            self.kept.settings.output.display()
                        ),
                    );
                }
                // What keeps it from being made keeps the window from being written, too.
                Err(error) => log.say(
                    "gone",
                    format_args!("error: {} was removed: {error:#}", self.kept.settings.output.display()),
                ),
            }
        }
        match self.kept.folder.write(&exported) {
            Ok(()) => {
                if self.warned.remove("disk") {
                    log.say("room", "windows are written again");
                    log.is_over("disk");
                }
                true
            }
            Err(error) => {
                self.warned.insert("disk".to_owned());
                // With what the system said: whether the disk is full, gone or somebody else's.
                let error = anyhow::Error::from(error);
                log.say(
                    "disk",
                    format_args!(
                        "error: a window is dropped, it cannot be written into {}: {error:#}{}",
                        self.kept.settings.output.display(),
                        room_is_made(&error)
                    ),
                );
                false
            }
        }
    }

    /// Profiles that the collector will not get.
    fn given_up(&self, windows: u64, why: &str) {
        self.shared().metrics.sent("otlp").given_up += windows;
        self.log
            .say("unsent", format_args!("error: {windows} window(s) are not sent to the collector: {why}"));
    }

    /// Makes room, and says what all windows take.
    pub fn prune(&mut self) {
        let Kept { settings, folder, .. } = &mut self.kept;
        let pruned = folder.prune(SystemTime::now(), settings.keep, settings.max_disk);
        let bytes = folder.bytes();
        let mut shared = self.shared();
        match pruned {
            Ok(removed) => shared.metrics.windows_removed += removed,
            Err(error) => {
                self.log.say("prune", format_args!("error: old windows cannot be removed: {error}"))
            }
        }
        shared.metrics.disk_bytes = bytes;
    }

    /// Whether a meter that counted has counted nothing in all of a window, and is to be looked for.
    fn lacks_a_meter(&mut self, window: &Window) -> bool {
        let profile = &window.profile;
        let mut silent = None;
        for (_, domain) in profile.top_domains() {
            let is_measured = domain.info.method == Method::Measured;
            if domain.balance.measured > Joules::ZERO {
                self.counted.insert(domain.info.name.clone());
            } else if is_measured && self.counted.contains(&domain.info.name) {
                silent = Some(&domain.info);
            }
        }
        let Some(info) = silent.filter(|_| profile.duration.as_secs_f64() >= LONG_ENOUGH.as_secs_f64())
        else {
            return false;
        };
        if self.kept.searched.is_some_and(|searched| searched.elapsed() < BETWEEN_SEARCHES) {
            return false;
        }
        self.kept.searched = Some(Instant::now());
        self.log.say(
            "meter",
            format_args!(
                "warning: the meter {} of {} counts nothing any more: the recording begins anew with what meters there are",
                info.source, info.name
            ),
        );
        true
    }

    /// Whether CPUs came or went since the recording began.
    fn has_other_cpus(&mut self) -> bool {
        let online = topology::online(&Roots::default()).ok();
        let is_other = online != self.online && online.is_some();
        if is_other {
            self.log.say("cpus", "CPUs came or went: the recording begins anew");
        }
        is_other
    }

    /// Whether the recording may begin anew for want of room for names.
    fn wants_room(&mut self) -> bool {
        if self.kept.made_room.is_some_and(|made| made.elapsed() < BETWEEN_ROOM) {
            return false;
        }
        self.kept.made_room = Some(Instant::now());
        self.log
            .say("names", "there were more control groups than are remembered: the recording begins anew");
        true
    }

    /// Reads the configuration again. `true`: the recording is to begin anew.
    pub fn reload(&mut self) -> bool {
        let new = match self.kept.asked.settings() {
            Ok(new) => new,
            Err(error) => {
                self.shared().metrics.failed_reloads += 1;
                self.log.answer(format_args!("error: the settings stay as they are: {error:#}"));
                return false;
            }
        };
        let old = &self.kept.settings;
        if new.output != old.output || new.user != old.user || new.receivers != old.receivers {
            self.log.answer(
                "warning: output, user, push and otlp stay as they were: end the agent and start it again for others",
            );
        }
        let is_same = new.sampled.is_as(&old.sampled);
        let new = Settings {
            output: old.output.clone(),
            user: old.user.clone(),
            receivers: old.receivers.clone(),
            ..new
        };
        if new.listen != old.listen {
            // The old address may be a part of the new one.
            self.kept.server = None;
            self.kept.server = listen(new.listen, &self.shared, &self.log);
        }
        self.kept.settings = new;
        let bounds = Bounds { functions: self.kept.settings.functions, cgroups: self.kept.settings.cgroups };
        {
            let mut shared = self.shared();
            shared.metrics.set_bounds(bounds);
            shared.metrics.reloads += 1;
        }
        self.prune();
        self.log.answer("the settings were read again");
        !is_same
    }
}

/// Starts the server; where that cannot be, says so.
pub fn listen(address: Listen, shared: &Arc<Mutex<Shared>>, log: &Log) -> Option<Server> {
    let Listen::At(address) = address else { return None };
    match Server::start(address, page(shared)) {
        Ok(server) => Some(server),
        Err(error) => {
            log.say("listen", format_args!("error: nobody is answered: cannot listen on {address}: {error}"));
            None
        }
    }
}
/// How a full disk gets room.
fn room_is_made(error: &anyhow::Error) -> &'static str {
    let is_full = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    };
    match error.chain().any(is_full) {
        true => {
            "; make room there, or let the agent keep less: --max-disk below what the disk has, or a shorter --keep"
        }
        false => "",
    }
}
