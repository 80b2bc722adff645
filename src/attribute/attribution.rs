//! What attribution is asked for, and what comes out.

use super::energy_bucket::Bucket;
use crate::profile::Balance;
use crate::units::{Joules, Nanoseconds, Watts};

/// How to attribute.
#[derive(Debug, Clone)]
pub struct Options {
    /// Energy of one bucket.
    pub bucket: Joules,
    /// Constant power by domain, as far as it is known from a model.
    pub static_power: Vec<Watts>,
    /// A quantum can reach this far back at most; the attributor keeps as much of the past.
    pub horizon: Nanoseconds,
    /// Keep the joules of each cell in each bucket.
    pub keep_buckets: bool,
    /// Over which time the model's proportions hold.
    pub sharing: Sharing,
    /// Find out how joules depend on the weights and the static power.
    pub sensitivities: bool,
}

/// Over which time joules are divided by the model's proportions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// In each bucket: code that runs while much is measured gets much.
    #[default]
    ByBucket,
    /// Over the whole recording: what the buckets gave to cells is pooled.
    Whole,
}

/// What came out.
#[derive(Debug, Clone, Default)]
pub struct Attribution {
    /// Joules of the cells: rows of as many columns as there are domains.
    pub cell_joules: Vec<Joules>,
    /// Change of a cell's joules in a domain with the weight of each event, and lastly with the static
    /// power, by way of the sums of buckets; empty if it was not asked for. See [`Options::sensitivities`].
    pub sensitivities: Vec<f32>,
    /// The account of each domain.
    pub balances: Vec<Balance>,
    /// The buckets, if they were to be kept.
    pub buckets: Vec<Bucket>,
    /// Readings that were refused because they went backwards.
    pub refused_readings: u64,
}
