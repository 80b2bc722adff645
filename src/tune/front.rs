//! The Pareto front: the settings that no other beats in both time and energy.
//!
//! Everything here is in costs, of which less is better: seconds and joules, or their reciprocals
//! per unit of work where performance and efficiency were measured.

/// Two costs of one setting: time and energy.
pub type Cost = [f64; 2];

/// Whether `a` is at least as good as `b` in both costs and better in one.
pub fn dominates(a: Cost, b: Cost) -> bool {
    a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1])
}

/// The positions of the points that no other point dominates, from the fastest to the thriftiest.
///
/// Points that are equal in both costs are all on the front or all off it. Of points equal in one
/// cost only the better in the other stays. Points that are not finite are never on it.
pub fn pareto_front(points: &[Cost]) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..points.len()).filter(|&p| points[p].iter().all(|cost| cost.is_finite())).collect();
    order.sort_by(|&a, &b| {
        let [time, energy] = [0, 1].map(|axis| points[a][axis].total_cmp(&points[b][axis]));
        time.then(energy).then(a.cmp(&b))
    });
    let mut front: Vec<usize> = Vec::new();
    for position in order {
        let best = front.last().map(|&last| points[last]);
        if best.is_none_or(|best| points[position][1] < best[1] || points[position] == best) {
            front.push(position);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_in_both_costs_stay_ties_in_one_do_not() {
        let points = [[1.0, 5.0], [2.0, 3.0], [2.0, 3.0], [2.0, 4.0], [3.0, 3.0], [4.0, 1.0], [1.0, 6.0]];
        assert_eq!(pareto_front(&points), [0, 1, 2, 5]);
    }

    #[test]
    fn what_is_not_a_number_is_on_no_front() {
        assert_eq!(pareto_front(&[[f64::NAN, 0.0], [1.0, 1.0], [0.0, f64::INFINITY]]), [1]);
        assert!(pareto_front(&[]).is_empty());
    }

    proptest! {
        /// The fast sweep finds what the definition says; few values, so that there are many ties.
        #[test]
        fn is_what_nothing_dominates(points in proptest::collection::vec((0u8..6, 0u8..6), 0..40)) {
            let points: Vec<Cost> = points.into_iter().map(|(a, b)| [f64::from(a), f64::from(b)]).collect();
            let mut front = pareto_front(&points);
            let sorted = front.windows(2).all(|pair| points[pair[0]][0] <= points[pair[1]][0]);
            prop_assert!(sorted);
            front.sort_unstable();
            let expected: Vec<usize> =
                (0..points.len()).filter(|&p| !points.iter().any(|&other| dominates(other, points[p]))).collect();
            prop_assert_eq!(front, expected);
        }
    }
}
