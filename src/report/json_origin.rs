//! Where recordings come from, in JSON.

use serde::Serialize;

use super::json_balance::JsonBalance;
use super::summary::{MachineSummary, RecordingSummary, Summary};
use crate::identity::Identity;
use crate::label::Label;
use crate::profile::Balance;
use crate::units::Joules;

/// A recording of a report. `identity` is `null` if the recording does not say where it comes from.
#[derive(Serialize)]
pub(super) struct JsonRecording<'a> {
    file: Option<&'a Label>,
    hostname: &'a Label,
    kernel: &'a Label,
    machine: u32,
    identity: Option<Identity>,
}

/// A machine of several recordings, with its own balance.
#[derive(Serialize)]
pub(super) struct JsonMachine<'a> {
    name: &'a Label,
    boot: Option<&'a Label>,
    joules: Joules,
    balance: JsonBalance,
    domains: Vec<JsonMachineDomain<'a>>,
}

#[derive(Serialize)]
struct JsonMachineDomain<'a> {
    name: &'a Label,
    joules: Joules,
    balance: JsonBalance,
}

/// The recordings; none if the only one says nothing of itself.
pub(super) fn json_recordings(summary: &Summary) -> Vec<JsonRecording<'_>> {
    if let [only] = &summary.recordings[..]
        && only.identity.is_none()
    {
        return Vec::new();
    }
    summary.recordings.iter().map(JsonRecording::new).collect()
}

impl<'a> JsonRecording<'a> {
    fn new(recording: &'a RecordingSummary) -> Self {
        Self {
            file: recording.file.as_ref(),
            hostname: &recording.hostname,
            kernel: &recording.kernel,
            machine: recording.machine,
            identity: recording.identity.clone(),
        }
    }
}

impl<'a> JsonMachine<'a> {
    pub fn new(machine: &'a MachineSummary) -> Self {
        let domain = |(name, balance): &'a (Label, Balance)| JsonMachineDomain {
            name,
            joules: balance.measured,
            balance: JsonBalance::new(balance),
        };
        Self {
            name: &machine.name,
            boot: machine.boot.as_ref(),
            joules: machine.balance.measured,
            balance: JsonBalance::new(&machine.balance),
            domains: machine.domains.iter().map(domain).collect(),
        }
    }
}
