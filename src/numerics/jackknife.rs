//! How much an estimate varies, from what it is without each of the parts of its data (Efron and Stein 1981).

/// The variance of an estimate, of which `without` are those that were made without one of as many parts each; zero of no
/// part or one.
pub fn variance(without: &[f64]) -> f64 {
    let parts = without.len().max(1) as f64;
    let mean = without.iter().sum::<f64>() / parts;
    let squares: f64 = without.iter().map(|estimate| (estimate - mean).powi(2)).sum();
    squares * (parts - 1.0) / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a mean it is the square of the textbook's standard error: of 1, 2, 4, 9 the variance is 38 / 3.
    #[test]
    fn of_a_mean_it_is_the_textbooks() {
        let values = [1.0, 2.0, 4.0, 9.0];
        let without = values.map(|value| (16.0 - value) / 3.0);
        assert!((variance(&without) - 38.0 / 3.0 / 4.0).abs() < 1e-12);
        assert_eq!([variance(&[]), variance(&[3.0])], [0.0; 2]);
    }
}
