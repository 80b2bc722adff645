//! Markers: the stretches of time in which energy was told apart, each with its joules and watts.

use serde::Serialize;

use super::tables::{Same, Tables};
use super::timeline::{Timeline, millis};
use crate::profile::Profile;
use crate::units::{Joules, Nanoseconds};

/// Name and type of the markers.
const BUCKET: &str = "Energy";
/// A marker with a start and an end.
const INTERVAL: u8 = 1;

/// The markers of a thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Markers {
    length: usize,
    name: Vec<u32>,
    start_time: Vec<f64>,
    end_time: Vec<f64>,
    phase: Same<u8>,
    category: Same<u8>,
    data: Vec<Data>,
}

#[derive(Serialize)]
struct Data {
    #[serde(rename = "type")]
    kind: &'static str,
    energy: String,
    power: String,
}

impl Markers {
    pub fn none() -> Self {
        Self::of(Vec::new(), 0)
    }

    /// A marker for each stretch of time.
    pub fn new(profile: &Profile, timeline: &Timeline, tables: &mut Tables) -> Self {
        let top: Vec<usize> = profile.top_domains().map(|(index, _)| index).collect();
        let rows = timeline.stretches().iter().map(|stretch| {
            let joules: Joules = top.iter().map(|&index| stretch.measured[index]).sum();
            let length = Nanoseconds::from_nanos((stretch.end - stretch.start).max(1));
            let data =
                Data { kind: BUCKET, energy: joules.to_string(), power: (joules / length).to_string() };
            (millis(stretch.start), millis(stretch.end), data)
        });
        Self::of(rows.collect(), tables.string(BUCKET))
    }

    fn of(markers: Vec<(f64, f64, Data)>, name: u32) -> Self {
        let rows = markers.len();
        let (mut start_time, mut end_time, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for (start, end, of_marker) in markers {
            start_time.push(start);
            end_time.push(end);
            data.push(of_marker);
        }
        Self {
            length: rows,
            name: vec![name; rows],
            start_time,
            end_time,
            phase: Same { value: INTERVAL, rows },
            category: Same { value: 0, rows },
            data,
        }
    }
}

/// How a type of markers is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    name: &'static str,
    display: [&'static str; 2],
    chart_label: &'static str,
    tooltip_label: &'static str,
    table_label: &'static str,
    fields: [Field; 2],
}

#[derive(Serialize)]
struct Field {
    key: &'static str,
    label: &'static str,
    format: &'static str,
}

/// How the markers are shown.
pub const SCHEMA: Schema = Schema {
    name: BUCKET,
    display: ["marker-chart", "marker-table"],
    chart_label: "{marker.data.power}",
    tooltip_label: "{marker.data.energy}, {marker.data.power}",
    table_label: "{marker.data.energy}, {marker.data.power}",
    fields: [
        Field { key: "energy", label: "Energy of all domains", format: "string" },
        Field { key: "power", label: "Mean power", format: "string" },
    ],
};
