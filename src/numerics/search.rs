//! Search along one argument: the bottom of a valley, and the edge of a region.

/// The argument between two bounds at which a function with one valley is least, by golden section (J. Kiefer,
/// "Sequential minimax search for a maximum", Proceedings of the American Mathematical Society 4, 1953).
///
/// The function is called 20 times; the answer is within 1/11000 of the distance of the bounds.
pub fn golden_section(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
    const STEPS: usize = 18;
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (value(left), value(right));
    for _ in 0..STEPS {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = value(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = value(right);
        }
    }
    (low + high) / 2.0
}

/// Where something ends that holds at `inside` and not at `outside`, by halving the distance `halvings` times:
/// the last argument found at which it holds, and the next at which it does not.
pub fn bisect(mut inside: f64, mut outside: f64, halvings: usize, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..halvings {
        let middle = (inside + outside) / 2.0;
        if holds(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    (inside, outside)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_values_that_are_alike_the_lowest_argument_is_taken() {
        let found = golden_section(1.0, 2.0, |_| 7.0);
        assert!((1.0..1.0 + 1.0 / 11_000.0).contains(&found), "{found}");
        let calls = std::cell::Cell::new(0);
        golden_section(0.0, 1.0, |x| {
            calls.set(calls.get() + 1);
            x
        });
        assert_eq!(calls.get(), 20);
    }

    proptest! {
        #[test]
        fn the_bottom_of_a_valley_is_found(bottom in 0.0..1.0f64, low in -5.0..0.0f64, high in 1.0..5.0f64) {
            let found = golden_section(low, high, |x| (x - bottom).abs().sqrt());
            prop_assert!((found - bottom).abs() <= (high - low) / 11_000.0, "{found} {bottom}");
        }

        #[test]
        fn the_edge_lies_between_both_answers(edge in 0.0..1.0f64, is_mirrored in any::<bool>()) {
            let sign = if is_mirrored { -1.0 } else { 1.0 };
            let (inside, outside) = bisect(0.0, sign, 10, |x| x * sign <= edge);
            prop_assert!(inside * sign <= edge && edge <= outside * sign);
            prop_assert!(((outside - inside) * sign - 1.0 / 1024.0).abs() < 1e-12);
        }
    }
}
