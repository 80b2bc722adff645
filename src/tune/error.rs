//! What can be wrong with a space, a table of runs or a model.

/// Why a tuning cannot be done as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The values of a variable make no sense.
    #[error("variable `{variable}`: {reason}")]
    Levels {
        /// The variable.
        variable: String,
        /// What is wrong with its values.
        reason: String,
    },
    /// Nothing can be varied.
    #[error("nothing to tune: name at least one variable, as in `--threads 1..16`")]
    EmptySpace,
    /// Two variables of one name.
    #[error("variable `{0}` is given twice")]
    TwiceTheSameVariable(String),
    /// More settings than can be predicted.
    #[error("the search space has more than {most} settings: take larger steps, as in `threads=4..64:4`")]
    SpaceTooLarge {
        /// The limit.
        most: usize,
    },
    /// A model formula that cannot be read.
    #[error("formula term `{text}`: {reason}")]
    Formula {
        /// The term.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No run to learn from.
    #[error("there are no runs to learn from")]
    NoRuns,
    /// A response without a logarithm.
    #[error("{response} {value} is not above 0, and the model needs its logarithm")]
    NotPositive {
        /// Which response.
        response: &'static str,
        /// Its value.
        value: f64,
    },
    /// The runs do not determine the model.
    #[error(
        "the runs do not determine the model: ln(y) ~ {formula} has {coefficients} coefficients, so it needs at \
         least {coefficients} different settings, and {settings} settings determine only {rank}{details}"
    )]
    RankDeficient {
        /// The model.
        formula: String,
        /// Its coefficients, that is, the least number of settings.
        coefficients: usize,
        /// The coefficients that the runs determine.
        rank: usize,
        /// Different settings among the runs.
        settings: usize,
        /// Which variables have too few values, and how to repair it.
        details: String,
    },
    /// A setting that names a variable or value outside of the space.
    #[error("setting `{text}`: {reason}")]
    Setting {
        /// The setting as given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A table that cannot be read at all.
    #[error("{reason}")]
    Table {
        /// What is wrong with it and how to repair it.
        reason: String,
    },
    /// One line of a table cannot be read.
    #[error("line {line}: {reason}")]
    TableLine {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<crate::tables::TableError> for TuneError {
    fn from(error: crate::tables::TableError) -> Self {
        Self::Table { reason: error.to_string() }
    }
}
