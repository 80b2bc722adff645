//! Reads the chosen meters for a while.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use eprof::meter::EnergyMeter;
use eprof::units::{Joules, Nanoseconds, Watts};
use serde::Serialize;

/// Joules of every domain over one span of time.
#[derive(Debug, Serialize)]
pub struct Watched {
    pub seconds: f64,
    pub domains: Vec<WatchedDomain>,
}

/// Joules of one domain.
#[derive(Debug, Serialize)]
pub struct WatchedDomain {
    pub name: String,
    /// `None` if it could not be read at the start or the end.
    pub joules: Option<Joules>,
    pub watts: Option<Watts>,
}

/// A meter's first and last reading of each domain, and how long they lie apart.
struct Span {
    first: Vec<Option<Joules>>,
    last: Vec<Option<Joules>>,
    started: Instant,
}

/// Reads the meters at their own pace, so that none wraps unseen.
pub fn watch(meters: &mut [Box<dyn EnergyMeter>], duration: Duration) -> io::Result<Watched> {
    let mut scratch = Vec::new();
    let mut read = |meter: &mut Box<dyn EnergyMeter>| -> io::Result<Vec<Option<Joules>>> {
        meter.read(&mut scratch)?;
        Ok(scratch.iter().map(|reading| reading.map(|reading| reading.energy)).collect())
    };
    let mut spans = Vec::new();
    for meter in meters.iter_mut() {
        let first = read(meter)?;
        spans.push(Span { last: first.clone(), first, started: Instant::now() });
    }
    let start = Instant::now();
    let pause = meters.iter().map(|meter| meter.pace().shortest.as_nanos()).max().unwrap_or(0);
    let pause = Duration::from_nanos(pause).max(Duration::from_millis(10));
    let mut domains = Vec::new();
    loop {
        let left = duration.saturating_sub(start.elapsed());
        thread::sleep(pause.min(left));
        let is_last = start.elapsed() >= duration;
        for (meter, span) in meters.iter_mut().zip(&mut spans) {
            span.last = read(meter)?;
            if is_last {
                let elapsed = Nanoseconds::from_nanos(span.started.elapsed().as_nanos() as u64);
                let used = span.first.iter().zip(&span.last);
                domains.extend(meter.domains().iter().zip(used).map(|(domain, (first, last))| {
                    let joules = first.zip(*last).map(|(first, last)| last - first);
                    let watts = joules.map(|joules| joules / elapsed);
                    WatchedDomain { name: domain.name.clone(), joules, watts }
                }));
            }
        }
        if is_last {
            return Ok(Watched { seconds: start.elapsed().as_secs_f64(), domains });
        }
    }
}
