//! Meters that one recorder read for others of its machine.
//!
//! Of the recorders of one machine only one reads the meters closely ([`MetersRead`]); another's recording has a reading at its
//! beginning, at its end and once in a while, or none. To divide joules among its samples takes more: here it is given the
//! readings of the one that had the turn, as if its own recorder had taken them at the same times. From there on it is a
//! recording like any other, and several of one machine are put together as ever.
//!
//! Whoever had the turn may have ended first, or have been killed. The next one then reads closely; and since it has read now
//! and then all the time, what was counted in between is known exactly, though not at which moment.

use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::recording::Recording;
use crate::recording::energy::{EnergyReading, domain_of_event};
use crate::recording::lent_reading::LentReading;
use crate::recording::metadata::{METADATA_EVENT, MetersRead};
use crate::recording::meter_curves::{Curve, Source, joined, ordered, within};
use crate::units::{Nanoseconds, Timestamp};
use perf_data::format::record_type;
use perf_data::record::Record;

/// So much of a recording may lie outside of what others read without a word.
const SOON: Nanoseconds = Nanoseconds::from_millis(500);

/// The meters of machines, as recordings of one report tell them.
#[derive(Debug, Default)]
pub struct NodeMeters {
    lenders: Vec<Lender>,
}

/// A recording with readings.
#[derive(Debug)]
struct Lender {
    boot: String,
    meters: MetersRead,
    domains: Vec<DomainInfo>,
    curves: Vec<Curve>,
}

/// Whether a recording was given readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lending {
    /// Its own are enough.
    NotNeeded,
    /// It was.
    Lent,
    /// It was for a part of its time; of the rest nobody has any.
    LentForAPart {
        /// How long that part is.
        metered: Nanoseconds,
        /// How long it recorded.
        of: Nanoseconds,
    },
    /// It needs some and nobody has them.
    NobodyHasThem,
}

/// Whether a recording leaves its meters to another.
pub fn borrows(recording: &Recording) -> bool {
    recording
        .metadata()
        .is_some_and(|metadata| matches!(metadata.meters, MetersRead::ByAnother | MetersRead::Not))
}

/// The boot whose clock and meters a recording's are.
pub fn boot(recording: &Recording) -> Option<&str> {
    let metadata = recording.metadata().filter(|metadata| metadata.clock == "CLOCK_MONOTONIC")?;
    metadata.identity.as_ref()?.boot.as_deref()
}

impl NodeMeters {
    /// Takes the readings of a recording, if it has any.
    pub fn add(&mut self, recording: &Recording) {
        let (Some(boot), Some(metadata)) = (boot(recording), recording.metadata()) else { return };
        let Read { curves, .. } = Read::of(recording);
        if curves.iter().any(|curve| curve.len() > 1) {
            let (meters, domains) = (metadata.meters, metadata.domains.clone());
            self.lenders.push(Lender { boot: boot.to_owned(), meters, domains, curves });
        }
    }

    /// Gives a recording the readings of its machine that others took in its time, if it needs them.
    pub fn lend_to(&self, recording: &mut Recording) -> Lending {
        if !borrows(recording) {
            return Lending::NotNeeded;
        }
        let Some(boot) = boot(recording).map(str::to_owned) else { return Lending::NobodyHasThem };
        let Read { window: Some(window), .. } = Read::of(recording) else { return Lending::NobodyHasThem };
        let of_machine = || self.lenders.iter().filter(|lender| lender.boot == boot);
        // Where the one that read closely is not there, all others' occasional readings say more than one's own.
        let is_known = of_machine().any(|lender| is_close(lender.meters));
        // Recorders that were told to read different meters do not read for each other.
        let candidates = of_machine().filter(|lender| !is_known || is_close(lender.meters));
        let best = candidates
            .map(|lender| (self.covered(lender, &boot, window), lender))
            .max_by_key(|(time, _)| *time);
        let Some((_, lender)) = best.filter(|(common, _)| *common > 0) else { return Lending::NobodyHasThem };
        let lenders: Vec<&Lender> = self.alike(lender, &boot).collect();
        if lenders.len() < 2 && lender.meters == MetersRead::ByAnother {
            // Its own.
            return Lending::NobodyHasThem;
        }
        let stretches = |domain: usize| {
            let sources: Vec<Source<'_>> = lenders
                .iter()
                .map(|lender| Source { curve: &lender.curves[domain], is_close: is_close(lender.meters) })
                .collect();
            joined(&sources)
        };
        // One without a break: joules that nobody counted are no joules of zero.
        let longest = stretches(0).into_iter().filter_map(|curve| common(&curve, window));
        let Some(metered) = longest.max_by_key(|common| common.1.since(common.0)) else {
            return Lending::NobodyHasThem;
        };
        let mut readings = Vec::new();
        for domain in 0..lender.domains.len() {
            let curves = stretches(domain).into_iter().map(|curve| within(&curve, metered));
            let curve = curves.max_by_key(Vec::len).unwrap_or_default();
            let domain = domain as u32;
            readings.extend(curve.into_iter().map(|(time, energy)| LentReading { domain, time, energy }));
        }
        readings.sort_by_key(|reading| (reading.time, reading.domain));
        recording.lend(lender.domains.clone(), readings);
        let (of, metered) = (window.1.since(window.0), metered.1.since(metered.0));
        // Whoever reads begins and ends a moment before or after others.
        if of.as_nanos() - metered.as_nanos() <= SOON.as_nanos() {
            Lending::Lent
        } else {
            Lending::LentForAPart { metered, of }
        }
    }

    /// Recordings with the same meters.
    fn alike<'a>(&'a self, lender: &'a Lender, boot: &'a str) -> impl Iterator<Item = &'a Lender> {
        let key = key(&lender.domains);
        self.lenders.iter().filter(move |other| other.boot == boot && self::key(&other.domains) == key)
    }

    /// Nanoseconds of the window in which those who read these meters read them.
    fn covered(&self, lender: &Lender, boot: &str, window: (Timestamp, Timestamp)) -> u64 {
        let curves = || self.alike(lender, boot).flat_map(|lender| lender.curves.iter());
        let first = curves().filter_map(|curve| curve.first()).map(|(time, _)| *time).min();
        let last = curves().filter_map(|curve| curve.last()).map(|(time, _)| *time).max();
        let (Some(first), Some(last)) = (first, last) else { return 0 };
        last.min(window.1).as_nanos().saturating_sub(first.max(window.0).as_nanos())
    }
}

/// What a curve and a window have in common.
fn common(curve: &Curve, window: (Timestamp, Timestamp)) -> Option<(Timestamp, Timestamp)> {
    let (start, end) = (curve.first()?.0.max(window.0), curve.last()?.0.min(window.1));
    (start < end).then_some((start, end))
}

fn is_close(meters: MetersRead) -> bool {
    matches!(meters, MetersRead::ForAll | MetersRead::ByItself)
}

/// What meters must agree in to be the same.
fn key(domains: &[DomainInfo]) -> Vec<(&str, DomainKind, Method)> {
    domains.iter().map(|domain| (domain.name.as_str(), domain.kind, domain.method)).collect()
}

/// What the recording's own recorder read.
struct Read {
    curves: Vec<Curve>,
    /// From its first record with a time to its last.
    window: Option<(Timestamp, Timestamp)>,
}

impl Read {
    fn of(recording: &Recording) -> Self {
        let domains = recording.metadata().map_or(&[][..], |metadata| &metadata.domains);
        let domain_of = |name: &str| {
            let name = domain_of_event(name)?;
            domains.iter().position(|domain| domain.name == name)
        };
        let events: Vec<(bool, Option<usize>)> = recording
            .events()
            .iter()
            .map(|event| (event.name == METADATA_EVENT, domain_of(&event.name)))
            .collect();
        let mut curves = vec![Curve::new(); domains.len()];
        let mut window: Option<(Timestamp, Timestamp)> = None;
        let (mut records, decoder) = (recording.records(), recording.decoder());
        loop {
            let raw = match records.next_raw() {
                Ok(Some(raw)) => raw,
                Err(error) if error.is_recoverable() => continue,
                Ok(None) | Err(_) => break,
            };
            let context = decoder.context(&raw);
            let event = context.event.and_then(|event| events.get(event.0 as usize)).copied();
            // The metadata is written a while before anything is counted.
            if let (record_type::SAMPLE, Some(time), Some((false, domain))) = (raw.kind, context.time, event)
            {
                let (first, last) = window.get_or_insert((time, time));
                (*first, *last) = ((*first).min(time), (*last).max(time));
                if let Some(domain) = domain
                    && let Ok(Record::Sample(sample)) = decoder.decode(&raw, &context)
                    && let Some(reading) = EnergyReading::from_bytes(sample.raw)
                {
                    curves[domain].push((time, reading.energy));
                }
            }
            let seen = raw.position;
            records.release_before(seen);
        }
        curves.iter_mut().for_each(ordered);
        Self { curves, window }
    }
}
