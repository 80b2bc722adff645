//! One run of a program: started on its CPUs, metered from before its start to its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::cpu_frequency::CpuFrequency;
use super::error::TuningError;
use super::supervise::{Ending, supervise};
use crate::measure::RunMeter;
use crate::process::clocks::children_cpu_seconds;
use crate::process::{Signals, environment};

/// As much of a program's output is searched for the figure.
const MOST_OUTPUT: u64 = 16 << 20;

/// What to run.
#[derive(Debug)]
pub struct Trial<'a> {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// The setting, for messages.
    pub setting: String,
    /// Variables added to the environment.
    pub environment: Vec<(&'static str, String)>,
    /// CPUs the program may run on; all if `None`.
    pub cpus: Option<Vec<u32>>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// File for its output.
    pub output: &'a Path,
}

/// What a run took.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// From start to end.
    pub seconds: f64,
    /// By the meter, in that time.
    pub joules: f64,
    /// CPU time of the program and its descendants.
    pub cpu_seconds: f64,
    /// Mean CPU frequency, where it can be read.
    pub ghz: Option<f64>,
    /// What the program printed.
    pub output: Vec<u8>,
}

/// What a run needs besides the program.
pub struct Instruments<'a> {
    /// The joules.
    pub meter: &'a mut RunMeter,
    /// Requests to end, and the news that a child ended.
    pub signals: &'a Signals,
    /// The frequencies, where they are tuned.
    pub frequency: Option<&'a CpuFrequency>,
}

impl Trial<'_> {
    /// Runs the program to its end.
    ///
    /// # Errors
    /// A program that cannot be started, fails or takes too long; a meter that cannot be read; a
    /// signal that asks eprof to end, in which case the program has been ended as well.
    pub fn run(&self, instruments: Instruments<'_>) -> Result<Taken, TuningError> {
        let Instruments { meter, signals, frequency } = instruments;
        let command = self.prepare()?;
        let cpu_before = children_cpu_seconds();
        let mut frequencies = Vec::new();
        let mut next_reading = Instant::now() + meter.longest_pause();
        let energy_before = meter.read()?;
        let ending = supervise(command, self.cpus.as_deref(), signals, self.timeout, || {
            frequencies.extend(frequency.and_then(CpuFrequency::current));
            if Instant::now() >= next_reading {
                meter.read()?;
                next_reading += meter.longest_pause();
            }
            Ok(())
        })?;
        let joules = (meter.read()? - energy_before).as_joules();
        let (status, time) = match ending {
            Ending::Ended(status, time) => (status, time),
            Ending::NotStarted(source) => return Err(self.cannot_launch(source)),
            Ending::TimedOut => {
                let seconds = self.timeout.unwrap_or_default().as_secs();
                let (command, setting) = (self.line(), self.setting.clone());
                return Err(TuningError::TimedOut { command, setting, seconds });
            }
        };
        let seconds = time.as_secs_f64();
        let output = read_tail(self.output).unwrap_or_default();
        if !status.success() {
            let tail = tail_of(&output);
            return Err(TuningError::Failed {
                command: self.line(),
                setting: self.setting.clone(),
                status,
                tail,
            });
        }
        if joules <= 0.0 {
            return Err(TuningError::NoEnergy { command: self.line(), seconds });
        }
        let ghz =
            (!frequencies.is_empty()).then(|| frequencies.iter().sum::<f64>() / frequencies.len() as f64);
        Ok(Taken { seconds, joules, cpu_seconds: children_cpu_seconds() - cpu_before, ghz, output })
    }

    /// The command line for messages.
    pub fn line(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    fn prepare(&self) -> Result<Command, TuningError> {
        let mut words = self.command.iter();
        let program = words.next().ok_or_else(|| self.cannot_launch(io::ErrorKind::InvalidInput.into()))?;
        let output = File::create(self.output).map_err(|source| self.cannot_launch(source))?;
        let errors = output.try_clone().map_err(|source| self.cannot_launch(source))?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(output).stderr(errors);
        environment::restore(&mut command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    fn cannot_launch(&self, cause: io::Error) -> TuningError {
        let program =
            self.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        TuningError::Launch { program, cause }
    }
}

/// The end of a file.
fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_OUTPUT)))?;
    let mut bytes = Vec::new();
    file.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last lines of an output, in a form that can be appended to a message.
pub fn tail_of(output: &[u8]) -> String {
    const LINES: usize = 5;
    const WIDTH: usize = 200;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines[lines.len().saturating_sub(LINES)..].iter();
    // Control characters of the program must not act on the user's terminal.
    let clean = |line: &&str| line.chars().filter(|c| !c.is_control()).take(WIDTH).collect::<String>();
    match lines.is_empty() {
        true => "; it printed nothing".into(),
        false => format!("; it printed:\n  {}", shown.map(clean).collect::<Vec<_>>().join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_shown_and_do_no_harm() {
        let output: String = (0..20).map(|n| format!("line {n}\x1b[31m\n")).collect();
        let tail = tail_of(output.as_bytes());
        assert_eq!(tail.lines().count(), 6);
        assert!(tail.ends_with("line 19[31m"), "{tail}");
        assert_eq!(tail_of(b" \n"), "; it printed nothing");
    }
}
