//! Which settings of a program spend the least energy for their speed, from a dozen runs.
//!
//! ```text
//!   space ──► design ──► runs ──► model ──► front ──► zone ──► choice
//!   what can  which      time,    ln(y) ~   nothing   cannot   least energy
//!   be set    settings   energy   splines   is better be told  under a limit
//!             to run              for both            apart
//! ```
//!
//! All of it is arithmetic: values in, values out. Running programs, changing the machine's settings
//! and reading meters is the work of [`crate::record`].

pub mod accuracy;
pub mod analysis;
mod best_form;
pub mod choice;
pub mod design;
pub mod draw;
mod error;
pub mod formula;
pub mod front;
pub mod hold_out;
pub mod levels;
pub mod model;
pub mod out_of_line;
pub mod runs;
pub mod search;
pub mod show;
pub mod space;
pub mod spline;
pub mod surface;
pub mod table;
pub mod validate;
pub mod zone;

pub use error::TuneError;
