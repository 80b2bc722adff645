//! Numerical methods, each once: values in, values out, nothing of energy or of this program's data.
//!
//! Where a method is, by what is asked:
//!
//! | question | module |
//! |---|---|
//! | coefficients with residuals, leverages and standard errors | [`least_squares`]: orthogonal decomposition |
//! | many fits of different columns to the same rows | [`normal_equations`]: rows summed once |
//! | coefficients of given signs | [`nnls`]: active sets, behind the two beside it |
//! | more columns than rows can tell apart | [`ridge`]: penalised least squares |
//! | one straight line | [`mod@line`] |
//! | errors that are wild now and then | [`robust`]: deviations by medians, Huber's weights |
//! | the middle of values, or any share of them | [`quantiles`] |
//! | the mean of a sample and its standard error | [`mean`] |
//! | how wide an interval is from few values | [`student`] |
//! | rows to hold out in turn | [`folds`] |
//! | how wide an interval is by what was held out | [`left_out`] |
//! | the least of a function of one argument | [`search`] |
//! | numbers that look random and repeat | [`random`] |
//!
//! Matrices are nalgebra's. A design has one row per observation and one column per coefficient.

pub mod folds;
pub mod jackknife;
pub mod least_squares;
pub mod left_out;
pub mod line;
pub mod mean;
pub mod nnls;
pub mod normal_equations;
pub mod quantiles;
pub mod random;
pub mod ridge;
pub mod robust;
pub mod search;
pub mod student;
