//! What runs the tests of a program of tests. It looks and is used as the compiler's own harness, and beyond that it says of
//! a test that called [`skip`](crate::skip) that it was ignored, and why.
//!
//! A program of tests names it in its root, and has `harness = false` in `Cargo.toml`:
//!
//! ```ignore
//! #[macro_use(println, test)]
//! extern crate eprof_testbed;
//!
//! eprof_testbed::harness!();
//! ```
//!
//! `println!` is the standard library's but for where text goes: what a test prints is kept, and shown if it fails.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A test, as `#[test]` makes it known.
pub struct Test {
    /// Its module's path, with the program's name in front.
    pub module: &'static str,
    /// The function's name.
    pub name: &'static str,
    /// The test.
    pub run: fn(),
    /// Why it runs only where it is asked for; `None` of one that always runs.
    pub ignored: Option<&'static str>,
}

inventory::collect!(Test);

/// What is known of the test that runs in a thread.
#[derive(Default)]
struct Running {
    is_shown: bool,
    printed: String,
    skipped: Option<String>,
}

thread_local! {
    static RUNNING: RefCell<Option<Arc<Mutex<Running>>>> = const { RefCell::new(None) };
}

fn locked(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with what is known of this thread's test. `None` in threads that tests started.
fn with_test<T>(act: impl FnOnce(&mut Running) -> T) -> Option<T> {
    // While a thread ends, its own values may be gone.
    let running = RUNNING.try_with(|running| running.borrow().clone()).ok().flatten()?;
    Some(act(&mut locked(&running)))
}

/// Keeps what a test prints, or shows it where that was asked for; what other threads print is shown.
pub fn print(text: std::fmt::Arguments<'_>) {
    let kept = with_test(|running| {
        let keeps = !running.is_shown;
        if keeps {
            let _ = running.printed.write_fmt(text);
        }
        keeps
    });
    if kept != Some(true) {
        // Where nobody reads it any more, nobody misses it.
        let _ = std::io::stdout().write_fmt(text);
    }
}

/// This thread's test could not run, or not all of it.
pub(crate) fn skipped(reason: &str) {
    let is_told = with_test(|running| running.skipped = Some(reason.replace('\n', "; "))).is_some();
    if !is_told {
        std::println!("skipped: {reason}");
    }
}

/// The name of this thread's test: as the compiler's own harness does, this one gives it to the thread.
pub(crate) fn name() -> String {
    thread::current().name().unwrap_or("?").to_owned()
}

impl Test {
    fn full_name(&self) -> String {
        let module = self.module.split_once("::").map_or("", |(_, module)| module);
        if module.is_empty() { self.name.to_owned() } else { format!("{module}::{}", self.name) }
    }

    /// Each test has a thread of its own, so that no test finds what another left in its thread.
    fn outcome(&self, is_shown: bool) -> Result<Completion, Failed> {
        let running = Arc::new(Mutex::new(Running { is_shown, ..Running::default() }));
        let (known, run) = (Arc::clone(&running), self.run);
        let test = move || {
            RUNNING.set(Some(known));
            run();
        };
        let ended = thread::Builder::new().name(self.full_name()).spawn(test)?.join();
        let running = std::mem::take(&mut *locked(&running));
        match (ended, running.skipped) {
            (Err(payload), _) => Err(Failed::from(told(running.printed, &message(&payload)))),
            (Ok(()), Some(reason)) => Ok(Completion::ignored_with(reason)),
            (Ok(()), None) => Ok(Completion::Completed),
        }
    }
}

/// All that is known of a failure. A panic that is passed on from another thread says its message here alone.
fn told(printed: String, message: &str) -> String {
    if printed.contains(message) { printed } else { printed + message }
}

fn message(payload: &Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}

/// Panics of tests are kept with what they print: where, why, and if wanted who called.
fn keep_panics() {
    let standard = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let wants_callers = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        let kept = with_test(|running| {
            let _ = writeln!(running.printed, "{panic}");
            if wants_callers {
                let _ = writeln!(running.printed, "{}", std::backtrace::Backtrace::force_capture());
            }
        });
        if kept.is_none() {
            standard(panic);
        }
    }));
}

/// Runs the program's tests, by the arguments that the compiler's own harness has, but for one: it takes one filter, not
/// several.
pub fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    keep_panics();
    let is_shown = arguments.nocapture;
    let mut tests: Vec<&'static Test> = inventory::iter::<Test>.into_iter().collect();
    tests.sort_by_key(|test| test.full_name());
    let trial = |test: &'static Test| {
        let trial = Trial::ignorable_test(test.full_name(), move || test.outcome(is_shown));
        trial.with_ignored_flag(test.ignored.is_some())
    };
    libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect()).exit_code()
}

/// The `main` of a program of tests.
#[macro_export]
macro_rules! harness {
    () => {
        fn main() -> ::std::process::ExitCode {
            $crate::harness::main()
        }
    };
}

/// Prints a line for people, which is kept until it is known whether the test passes.
#[macro_export]
macro_rules! println {
    () => { $crate::harness::print(::core::format_args!("\n")) };
    ($($text:tt)*) => { $crate::harness::print(::core::format_args!("{}\n", ::core::format_args!($($text)*))) };
}
