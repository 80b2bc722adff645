//! The mean of a sample, and how far the true one may be from it.

/// Mean and scatter of values that were measured independently of each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleMean {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub value: f64,
    /// Sum of their squared distances from the mean.
    pub squares: f64,
}

impl SampleMean {
    /// `None` without a value. Two passes, so that a large mean does not drown the scatter.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let count = values.clone().count();
        if count == 0 {
            return None;
        }
        let value = values.clone().sum::<f64>() / count as f64;
        let squares = values.map(|other| (other - value).powi(2)).sum();
        Some(Self { count, value, squares })
    }

    /// Estimated standard deviation of the mean, `s / √n` with `s² = squares / (n - 1)`; `None` of one value.
    pub fn standard_error(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count > 1).then(|| (self.squares / (count - 1.0) / count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // s = 2, s / √3 = 1.1547.
        let mean = SampleMean::of([10.0, 12.0, 14.0].into_iter()).expect("values");
        assert_eq!(mean, SampleMean { count: 3, value: 12.0, squares: 8.0 });
        assert!((mean.standard_error().expect("three values") - 2.0 / 3f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_value_says_nothing_of_its_error() {
        assert_eq!(SampleMean::of([3.0].into_iter()).expect("a value").standard_error(), None);
        assert_eq!(SampleMean::of(std::iter::empty()), None);
    }
}
