//! What a user says of a table of runs.

use super::super::space::Variable;

/// How to read a table; by default all is told by the columns' names.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// Column of the time, `NAME` or `NAME:UNIT`.
    pub time: Option<String>,
    /// Column of the energy, `NAME` or `NAME:UNIT`; several added up as `A+B`.
    pub energy: Option<String>,
    /// Column of the performance.
    pub performance: Option<String>,
    /// Column of the efficiency.
    pub efficiency: Option<String>,
    /// Columns that are settings; empty for all that are known to be.
    pub variables: Vec<String>,
    /// The variables of the search space as the user gave them; they are settings too.
    pub space: Vec<Variable>,
    /// Only rows whose column has this value.
    pub conditions: Vec<(String, String)>,
}
