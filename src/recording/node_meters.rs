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
use crate::recording::metadata::{METADATA_EVENT, MetersRead};
use crate::units::{Joules, Nanoseconds, Timestamp};
use perf_data::format::record_type;
use perf_data::record::Record;

/// With a reading of the same recorder within this time, no other one is asked.
const CLOSELY: Nanoseconds = Nanoseconds::from_millis(1000);

/// A reading that was lent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LentReading {
    /// Index of the domain among the metadata's.
    pub domain: u32,
    /// When it was taken.
    pub time: Timestamp,
    /// Joules since some time before all readings.
    pub energy: Joules,
}

/// What one meter counted, in the order of time.
type Curve = Vec<(Timestamp, Joules)>;

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
        let mut readings = Vec::new();
        for domain in 0..lender.domains.len() {
            let sources: Vec<Source<'_>> = lenders
                .iter()
                .map(|lender| Source { curve: &lender.curves[domain], is_close: is_close(lender.meters) })
                .collect();
            let curve = within(&joined(&sources), window);
            let domain = domain as u32;
            readings.extend(curve.into_iter().map(|(time, energy)| LentReading { domain, time, energy }));
        }
        readings.sort_by_key(|reading| (reading.time, reading.domain));
        recording.lend(lender.domains.clone(), readings);
        Lending::Lent
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

/// Leaves out what went backwards, as attribution does.
fn ordered(curve: &mut Curve) {
    curve.sort_by_key(|(time, _)| *time);
    let mut highest: Option<(Timestamp, Joules)> = None;
    curve.retain(|&(time, energy)| {
        let is_later = highest.is_none_or(|(last, most)| time > last && energy >= most);
        if is_later {
            highest = Some((time, energy));
        }
        is_later
    });
}

/// What one recorder read of a meter.
#[derive(Debug, Clone, Copy)]
struct Source<'a> {
    curve: &'a [(Timestamp, Joules)],
    /// All the time, and not now and then.
    is_close: bool,
}

impl Source<'_> {
    /// The next reading after a time.
    fn after(&self, time: Timestamp) -> Option<(Timestamp, Joules)> {
        self.curve.get(self.curve.partition_point(|(at, _)| *at <= time)).copied()
    }

    /// The last reading that was not after a time.
    fn until(&self, time: Timestamp) -> Option<(Timestamp, Joules)> {
        let after = self.curve.partition_point(|(at, _)| *at <= time);
        self.curve.get(after.checked_sub(1)?).copied()
    }
}

/// One curve of what several recorders read of one meter: from the one that read closely to the next. Each of them counts from a
/// zero of its own, which is found where the curve is known already.
fn joined(sources: &[Source<'_>]) -> Curve {
    let begins = |source: &&Source<'_>| source.curve.first().map(|(time, _)| *time);
    let close =
        sources.iter().filter(|source| source.is_close && !source.curve.is_empty()).min_by_key(begins);
    let first = close.or_else(|| sources.iter().filter(|source| !source.curve.is_empty()).min_by_key(begins));
    let Some(mut current) = first.copied() else { return Curve::new() };
    let mut zero = Joules::ZERO;
    let mut curve: Curve = current.curve.first().copied().into_iter().collect();
    while let Some(&(now, so_far)) = curve.last() {
        let own = current.after(now).filter(|(time, _)| time.since(now) <= CLOSELY);
        let (time, energy) = match own {
            Some(next) => next,
            None => {
                // Of those who know the curve's zero by now, who goes on first; or else who begins next.
                let start = curve[0].0;
                let next = |known: bool| {
                    let follows = sources.iter().filter_map(|source| {
                        let anchor = source.until(now).filter(|(time, _)| *time >= start);
                        Some((source.after(now)?, anchor, source))
                    });
                    follows
                        .filter(|(_, anchor, _)| anchor.is_some() == known)
                        .min_by_key(|((time, _), ..)| *time)
                };
                let Some((next, anchor, source)) = next(true).or_else(|| next(false)) else { break };
                zero = match anchor {
                    Some((time, energy)) => at(&curve, time) - energy,
                    None => so_far - next.1,
                };
                current = *source;
                next
            }
        };
        // Two readings of one meter at one time differ by what it counts between its steps.
        curve.push((time, (zero + energy).max(so_far)));
    }
    curve
}

/// The energy at a time within a curve.
fn at(curve: &[(Timestamp, Joules)], time: Timestamp) -> Joules {
    let next = curve.partition_point(|(point, _)| *point < time);
    match (next.checked_sub(1).and_then(|before| curve.get(before)), curve.get(next)) {
        (Some(&(t0, e0)), Some(&(t1, e1))) => {
            e0 + (e1 - e0) * (time.since(t0).as_nanos() as f64 / t1.since(t0).as_nanos().max(1) as f64)
        }
        (Some(&(_, energy)), None) | (None, Some(&(_, energy))) => energy,
        (None, None) => Joules::ZERO,
    }
}

/// The part of a curve between two times, with what it was at them.
fn within(curve: &[(Timestamp, Joules)], (start, end): (Timestamp, Timestamp)) -> Curve {
    let (Some(&(first, _)), Some(&(last, _))) = (curve.first(), curve.last()) else { return Curve::new() };
    let (start, end) = (start.max(first), end.min(last));
    if start >= end {
        return Curve::new();
    }
    let inside = curve.iter().copied().filter(|(time, _)| *time > start && *time < end);
    [(start, at(curve, start))].into_iter().chain(inside).chain([(end, at(curve, end))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    /// What a recorder reads at these times of a meter that counts 2 W until 5 s and 6 W from then on.
    fn read(times: impl IntoIterator<Item = u64>) -> Curve {
        let joules = |millis: u64| 0.002 * millis as f64 + 0.004 * millis.saturating_sub(5000) as f64;
        let mut zero = None;
        let point = |millis| {
            let energy = joules(millis);
            (time(millis), Joules::from_joules(energy - *zero.get_or_insert(energy)))
        };
        times.into_iter().map(point).collect()
    }

    fn joules(curve: &Curve, from: u64, to: u64) -> f64 {
        (at(curve, time(to)) - at(curve, time(from))).as_joules()
    }

    #[test]
    fn who_takes_over_goes_on_where_the_first_one_ended() {
        // Killed after 6 s, without a last word; another one reads closely from 6.15 s, and has read at 3 s before. A third
        // one reads now and then.
        let holder = read((0..=6000).step_by(10));
        let next = read([3, 3003].into_iter().chain((6150..12_000).step_by(10)));
        let third = read([7, 6007, 11_500]);
        let all = [(&holder, true), (&next, false), (&third, false)];
        for turn in 0..3 {
            let mut sources = all.map(|(curve, is_close)| Source { curve, is_close });
            sources.rotate_left(turn);
            let curve = joined(&sources);
            let whole = read((0..=11_990).step_by(10));
            for (from, to) in [(0, 11_990), (0, 5000), (5990, 6200), (6150, 11_990)] {
                let (found, expected) = (joules(&curve, from, to), joules(&whole, from, to));
                assert!((found - expected).abs() < 1e-9, "{from} to {to}: {found} J instead of {expected}");
            }
            assert!(curve.len() > 1100 && curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        }
    }

    #[test]
    fn a_gap_that_nobody_saw_counts_nothing() {
        let (before, after) = (read([0, 500, 1000]), read([3000, 3500, 4000]));
        let sources = [&after, &before].map(|curve| Source { curve, is_close: true });
        let curve = joined(&sources);
        assert_eq!(curve.len(), 6);
        assert!((joules(&curve, 0, 4000) - 4.0).abs() < 1e-9 && joules(&curve, 1000, 3000).abs() < 1e-9);
    }

    #[test]
    fn a_window_ends_between_readings() {
        let curve = within(&read((0..=4000).step_by(100)), (time(250), time(1050)));
        assert_eq!((curve[0].0, curve[curve.len() - 1].0), (time(250), time(1050)));
        assert!((joules(&curve, 250, 1050) - 1.6).abs() < 1e-9 && curve.len() == 10);
        assert!(within(&curve, (time(2000), time(3000))).is_empty());
        assert!(joined(&[]).is_empty() && within(&Curve::new(), (time(0), time(1))).is_empty());
    }
}
