//! Over which stretch of time samples and losses lie, found in the order of time.

use crate::analyze::events::EventRoles;
use crate::analyze::intervals::losses::{Loss, Losses};
use crate::analyze::intervals::spans::{Span, SpanTracker};
use crate::analyze::intervals::survey::{Seen, add_stretch};
use crate::analyze::sample_key::NO_CPU;
use crate::analyze::steps::{LostStep, SampleStep};
use crate::attribute::Quantum;
use crate::profile::LostStretch;
use crate::units::Timestamp;

/// Gives samples and losses their stretch of time.
pub(crate) struct SpanFinder<'r> {
    roles: &'r EventRoles,
    spans: SpanTracker,
    losses: Losses,
    highest_cpu: Option<u32>,
    lost_stretches: Vec<LostStretch>,
    /// Samples have times.
    has_times: bool,
}

impl<'r> SpanFinder<'r> {
    pub fn new(roles: &'r EventRoles) -> Self {
        Self {
            roles,
            spans: SpanTracker::default(),
            losses: Losses::default(),
            highest_cpu: None,
            lost_stretches: Vec::new(),
            has_times: false,
        }
    }

    /// What was seen.
    pub fn seen(self) -> Seen {
        // Without times no sample is late.
        let late = |event| if self.has_times { self.spans.lateness_of_changes(event) } else { 1.0 };
        Seen {
            late: (0..self.roles.sampled().len()).map(late).collect(),
            highest_cpu: self.highest_cpu,
            lost_stretches: self.lost_stretches,
        }
    }

    /// The stretch of a sample. Only one event tells how long its CPU ran.
    #[inline]
    pub fn sample(&mut self, sample: &SampleStep) -> Span {
        let &SampleStep { end, count, cpu, event, owner } = sample;
        let cpu = (cpu != NO_CPU).then_some(cpu);
        self.highest_cpu = self.highest_cpu.max(cpu);
        self.has_times |= end != Timestamp::default();
        if !owner.is_idle() {
            self.losses.sampled(event, cpu, end, count);
        }
        self.span(event, cpu, end, count)
    }

    /// What was lost, by event. Attribution has been told of long losses when they began.
    pub fn lost(&mut self, lost: &LostStep) -> Vec<Quantum> {
        let &LostStep { end, cpu, records, event, mean, since } = lost;
        let mut losses = self.losses.lost(cpu, end, records);
        let known = !losses.is_empty();
        if let Some(&Loss { start, .. }) = losses.first() {
            add_stretch(&mut self.lost_stretches, LostStretch { start, end, records });
        }
        if !known {
            // Nothing was seen of that CPU so far.
            losses.push(Loss { event, count: mean.saturating_mul(records), start: since });
        }
        let quantum = |loss: Loss| {
            let span = self.span(loss.event, cpu, end, loss.count);
            let is_told = known && loss.is_long(end);
            (!is_told).then(|| loss.quantum(end, cpu, span))
        };
        losses.into_iter().filter_map(quantum).collect()
    }

    fn span(&mut self, event: u32, cpu: Option<u32>, end: Timestamp, count: u64) -> Span {
        let unit = self.roles.sampled()[event as usize].unit;
        self.spans.span(event, cpu, unit, end, count).told_by(self.roles.tells_time(event))
    }
}
