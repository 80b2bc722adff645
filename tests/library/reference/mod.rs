//! Another implementation of the attribution is the judge of eprof's: `tests/reference/attribution.py`, which decodes and
//! divides by itself, the plainest way, and takes nothing from eprof but the coefficients of the power model.
//!
//! Where design leaves freedom, the two need not agree to the last joule: eprof closes buckets at any time and the judge
//! where a meter was read, and what was not seen (lost records, unsampled others) is estimated by each in its own way.
//! How near they have to be is said by each case.

mod judge;
mod recorded;
mod simulated;
