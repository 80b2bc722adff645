//! Windows become profiles with names.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::error::LiveError;
use super::follow::Follower;
use super::footprint::Footprint;
use super::windows::{Cut, CutOptions, Windows};
use crate::analyze::{self, Dimensions, EarlierIntervals, ModelChoice, Options};
use crate::power_model::stored::StoredModel;
use crate::profile::Profile;
use crate::recording::Recording;
use crate::recording::metadata::Metadata;
use crate::symbolize::{SymbolCache, SymbolizeOptions, Symbols, UnwindFiles};
use crate::units::Nanoseconds;

/// A window is at least so many times as long as the analysis of the one before it took,
const ANALYSIS_SHARE: u64 = 5;
/// but no longer than this for that reason.
const LONGEST_PERIOD: Nanoseconds = Nanoseconds::from_millis(10_000);

/// How windows are made and analyzed.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Where they are cut.
    pub cut: CutOptions,
    /// What is told apart in them.
    pub dimensions: Dimensions,
    /// How their joules are divided.
    pub model: ModelChoice,
    /// The model kept for this machine's CPU.
    pub stored_model: Option<StoredModel>,
    /// Folder in which the running kernel's symbols are kept.
    pub kernel_cache: Option<PathBuf>,
    /// Source lines are looked up, which costs more.
    pub lines: bool,
    /// Files of programs stay open, with their tables of symbols and of unwinding, for the next window: of one a second that
    /// saves most of the work, and of one a minute it costs memory all the time.
    pub keeps_files: bool,
}

/// A stretch of the recording, analyzed.
#[derive(Debug, Clone)]
pub struct Window {
    /// Counted from 0.
    pub number: u64,
    /// Its profile.
    pub profile: Profile,
    /// The names of its code.
    pub symbols: Symbols,
    /// The recording that it is; writing its bytes saves it.
    pub recording: Arc<Recording>,
}

/// Reads a recording while it is made. What `eprof top` shows and any other reader of windows are made from.
pub struct Engine {
    follower: Follower,
    options: EngineOptions,
    windows: Option<Windows>,
    symbols: Option<SymbolCache>,
    number: u64,
    bytes: Vec<u8>,
    /// A window alone says too little of the machine's power.
    earlier: EarlierIntervals,
    unwind_files: UnwindFiles,
}

impl Engine {
    /// Reads what a recorder writes to the other end of `follower`.
    pub fn new(follower: Follower, options: EngineOptions) -> Self {
        Self {
            follower,
            options,
            windows: None,
            symbols: None,
            number: 0,
            bytes: Vec::new(),
            earlier: EarlierIntervals::default(),
            unwind_files: UnwindFiles::default(),
        }
    }

    /// What the recording says of itself, as soon as it does.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.windows.as_ref().map(Windows::metadata)
    }

    /// From now on lines are looked up, or not any more.
    pub fn set_lines(&mut self, lines: bool) {
        if self.options.lines != lines {
            self.options.lines = lines;
            self.symbols = self.windows.as_ref().map(|windows| self.symbol_cache(windows.metadata()));
        }
    }

    /// Looks up a window's names anew, as windows are named now.
    pub fn name_again(&mut self, window: &mut Window) {
        if let Some(cache) = &mut self.symbols {
            window.symbols = cache.symbolize(&window.profile.modules, &window.profile.addresses);
        }
    }

    /// Whether new control groups stay without a name: see [`Windows::is_full`].
    pub fn is_full(&self) -> bool {
        self.windows.as_ref().is_some_and(Windows::is_full)
    }

    /// What is kept from window to window.
    pub fn footprint(&self) -> Footprint {
        let of_windows = self.windows.as_ref().map(Windows::footprint).unwrap_or_default();
        let symbols = self.symbols.as_ref().map_or(0, SymbolCache::len);
        Footprint { symbols, ..of_windows }
    }

    /// The next window that is complete with what has been written; `None` until more is. Where the recorder `has_ended`, what is
    /// left is the last one. Of what was written no more is read than the window needs, so that one window at a time is in
    /// memory, however many there are to catch up with.
    ///
    /// # Errors
    /// A file that cannot be read as it was written.
    pub fn next_window(&mut self, has_ended: bool) -> Result<Option<Window>, LiveError> {
        loop {
            if let Some(cut) = self.windows.as_mut().map_or(Ok(None), Windows::next_window)? {
                return Ok(Some(self.analyze(cut)));
            }
            if !self.take()? {
                return if has_ended { self.last_window() } else { Ok(None) };
            }
        }
    }

    fn last_window(&mut self) -> Result<Option<Window>, LiveError> {
        let last = self.windows.as_mut().map_or(Ok(None), Windows::finish)?;
        Ok(last.map(|cut| self.analyze(cut)))
    }

    /// Takes some of what was written; `false` if there was nothing.
    fn take(&mut self) -> Result<bool, LiveError> {
        if self.windows.is_none() {
            let Some(head) = self.follower.head()? else { return Ok(false) };
            let windows = Windows::new(head, self.options.cut)?;
            self.symbols = Some(self.symbol_cache(windows.metadata()));
            self.windows = Some(windows);
        }
        let Some(windows) = &mut self.windows else { return Ok(false) };
        self.bytes.clear();
        let is_more = self.follower.read(&mut self.bytes)?;
        windows.push(&self.bytes);
        self.bytes.shrink_to(1 << 20);
        Ok(is_more)
    }

    /// Makes the window's profile. Where that takes long, as with the symbols of large programs that are new, the next
    /// windows are longer: the engine must not fall behind, nor take much of what it measures.
    fn analyze(&mut self, cut: Cut) -> Window {
        let started = Instant::now();
        let window = self.profile(cut);
        let took = started.elapsed().as_nanos() as u64;
        let longest = LONGEST_PERIOD.max(self.options.cut.period);
        let period = Nanoseconds::from_nanos(took.saturating_mul(ANALYSIS_SHARE)).min(longest);
        if let Some(windows) = &mut self.windows {
            windows.set_period(period.max(self.options.cut.period));
        }
        window
    }

    fn profile(&mut self, cut: Cut) -> Window {
        let Cut { recording, counted } = cut;
        let unwind_files = if self.options.keeps_files {
            self.unwind_files.next_recording();
            self.unwind_files.clone()
        } else {
            UnwindFiles::frugal()
        };
        let options = Options {
            unwind_files,
            dimensions: self.options.dimensions,
            model: self.options.model.clone(),
            earlier: Some(self.earlier.clone()),
            stored_model: self.options.stored_model.clone(),
            // A window is small, and what is measured should not be the analysis.
            threads: Some(1),
            counted: Some(counted),
            ..Options::default()
        };
        let profile = analyze::analyze(&recording, &options);
        // What is not kept is closed before other files are opened.
        drop(options);
        let symbols = match &mut self.symbols {
            Some(cache) => cache.symbolize(&profile.modules, &profile.addresses),
            None => Symbols::default(),
        };
        let number = self.number;
        self.number += 1;
        Window { number, profile, symbols, recording: Arc::new(recording) }
    }

    fn symbol_cache(&self, metadata: &Metadata) -> SymbolCache {
        let cache = SymbolCache::new(SymbolizeOptions {
            inlines: false,
            lines: self.options.lines,
            kernel_release: Some(metadata.machine.kernel.clone()),
            kernel_cache: self.options.kernel_cache.clone(),
            threads: Some(1),
            ..SymbolizeOptions::default()
        });
        if self.options.keeps_files { cache.keeping_tables() } else { cache }
    }
}
