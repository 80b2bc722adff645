//! Step 7: what a person or another program reads: table, JSON, CSV, flamegraph, exports.
//!
//! A [`Report`] is a plain value made from a profile and its symbols; the formats only write it.
//! All its texts are [`Label`](crate::label::Label)s, which are safe to show.
//!
//! Two sums hold in every report, and [`Report::new`] checks them:
//! - the balance: attributed + static + other processes + eprof itself + lost = measured;
//! - the rows: shown + cut + filtered + not selected = attributed.

pub mod annotate;
pub mod buckets;
mod by_group;
mod call_path_check;
mod cells;
pub mod csv;
mod deepest;
mod division;
mod drawn_frame;
mod error;
pub mod export;
mod exporter;
mod firefox;
#[cfg(test)]
mod fixture;
pub mod flamegraph;
mod flamegraph_change;
mod flamegraph_frames;
pub mod flamegraph_png;
pub mod flamegraph_text;
pub mod flamegraph_text_change;
pub mod folded;
mod frame_names;
mod frames;
mod groups;
mod head;
mod heading;
mod heat;
pub mod histogram;
#[cfg(test)]
mod hostile;
pub mod html;
pub mod json;
mod json_balance;
mod json_origin;
mod kept_tree;
#[cfg(test)]
mod laws;
mod missing_joules;
mod neighbours;
mod node_paths;
mod nodes;
mod nothing_selected;
mod otlp;
mod parallel;
pub mod perf_data;
pub mod pprof;
mod protobuf;
mod repeated;
mod row_sums;
mod rows;
mod rows_beside;
mod scale;
mod select;
pub mod speedscope;
mod stack_filter;
pub mod store;
mod style;
mod summary;
mod sums;
pub mod table;
#[cfg(test)]
mod tests;
mod texts;
mod top_functions;
mod totals_by_frame;
pub mod tree;
mod value;
mod walk;

pub use division::{DivisionSummary, DomainModelSummary};
pub use error::ReportError;
pub use missing_joules::MissingJoules;
pub use neighbours::{FunctionChoice, Neighbours, Side};
pub use repeated::said_once;
pub use rows::{Grouping, Place, Row, RowKind, SortKey};
pub use rows_beside::with_rows_beside;
pub use select::{Selection, TaskIds, Totals, Weight};
pub use style::Style;
pub use summary::{DomainSummary, EventSummary, MachineSummary, RecordingSummary, Summary, Verified};
pub use value::{Options, Report};
