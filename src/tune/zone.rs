//! The trade-off zone: every setting that cannot be told from a Pareto-optimal one.
//!
//! Measurements and predictions have errors, so a point just behind the front may in truth be on it.
//! The zone is built in the paper's five steps: (1) take the points; (2) draw the front through the
//! optimal ones; (3) extend its ends parallel to the axes; (4) shift a copy inwards by the error limit of
//! each axis; (5) what lies between the two curves is the zone.
//!
//! The front is drawn as steps, since that is the boundary of what its points dominate: a point is
//! outside of the zone only if some point of the front beats it by more than the error in both costs.

use super::front::{Cost, pareto_front};

/// The front of some points, and the error limits of their costs.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOffZone {
    /// Costs on the front, from the fastest to the thriftiest, no two equal.
    front: Vec<Cost>,
    limits: [f64; 2],
}

impl TradeOffZone {
    /// The zone behind the front of these points. `limits` are the error limits of time and energy as
    /// shares of the value (0.05 for 5 %); negative ones count as 0.
    pub fn behind(points: &[Cost], limits: [f64; 2]) -> Self {
        let mut front: Vec<Cost> =
            pareto_front(points).into_iter().map(|position| points[position]).collect();
        front.dedup();
        Self { front, limits: limits.map(|limit| limit.max(0.0)) }
    }

    /// The error limits of time and energy.
    pub fn limits(&self) -> [f64; 2] {
        self.limits
    }

    /// The front's costs, from the fastest to the thriftiest.
    pub fn front(&self) -> &[Cost] {
        &self.front
    }

    /// Whether a point cannot be told from optimal.
    pub fn contains(&self, point: Cost) -> bool {
        if self.front.is_empty() || point.iter().any(|cost| cost.is_nan()) {
            return false;
        }
        // Of the front points that are faster by more than the error, the slowest is the thriftiest.
        let faster = self.front.partition_point(|&cost| self.shifted(cost)[0] <= point[0]);
        match faster.checked_sub(1).map(|last| self.shifted(self.front[last])) {
            None => true,
            Some(best) => point[1] < best[1] || point == best,
        }
    }

    /// The zone as a closed polygon within a drawing that reaches up to the costs `outer`.
    pub fn polygon(&self, outer: Cost) -> Vec<Cost> {
        let shifted: Vec<Cost> = self.front.iter().map(|&cost| self.shifted(cost)).collect();
        let mut polygon = steps(&self.front, outer);
        polygon.extend(steps(&shifted, outer).into_iter().rev());
        polygon
    }

    fn shifted(&self, cost: Cost) -> Cost {
        [cost[0] * (1.0 + self.limits[0]), cost[1] * (1.0 + self.limits[1])]
    }
}

/// The front as steps, its ends extended to the edge of the drawing.
pub fn steps(front: &[Cost], outer: Cost) -> Vec<Cost> {
    let (Some(&first), Some(&last)) = (front.first(), front.last()) else {
        return Vec::new();
    };
    let mut line = vec![[first[0], outer[1].max(first[1])], first];
    for pair in front.windows(2) {
        line.push([pair[1][0], pair[0][1]]);
        line.push(pair[1]);
    }
    line.push([outer[0].max(last[0]), last[1]]);
    line
}

#[cfg(test)]
mod tests {
    use super::super::front::dominates;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holds_what_is_within_the_error_of_the_front() {
        let zone = TradeOffZone::behind(&[[1.0, 10.0], [2.0, 5.0]], [0.1, 0.2]);
        assert!(zone.contains([1.0, 10.0]) && zone.contains([2.0, 5.0]));
        assert!(zone.contains([1.09, 50.0]), "as fast as the fastest within the error");
        assert!(!zone.contains([1.2, 12.5]), "10 % slower and 20 % dearer than the first");
        assert!(zone.contains([2.1, 9.0]), "not told apart from the second in time");
        assert!(!zone.contains([2.3, 6.5]));
        assert!(zone.contains([9.0, 5.9]), "as thrifty as the thriftiest within the error");
    }

    /// By hand: the front, extended, and back along its copy, 10 % slower and 20 % dearer.
    #[test]
    fn the_polygon_lies_between_the_front_and_its_copy() {
        let zone = TradeOffZone::behind(&[[1.0, 10.0], [2.0, 5.0]], [0.5, 0.2]);
        let expected = [
            [1.0, 20.0],
            [1.0, 10.0],
            [2.0, 10.0],
            [2.0, 5.0],
            [4.0, 5.0],
            [4.0, 6.0],
            [3.0, 6.0],
            [3.0, 12.0],
            [1.5, 12.0],
            [1.5, 20.0],
        ];
        assert_eq!(zone.polygon([4.0, 20.0]), expected);
    }

    #[test]
    fn no_points_make_no_zone() {
        let zone = TradeOffZone::behind(&[], [0.1, 0.1]);
        assert!(!zone.contains([1.0, 1.0]));
        assert!(zone.polygon([1.0, 1.0]).is_empty());
    }

    proptest! {
        /// The search agrees with the definition, and a wider zone holds all of a narrower one.
        #[test]
        fn holds_what_no_shifted_front_point_dominates(
            points in proptest::collection::vec((1u8..9, 1u8..9), 1..20),
            limits in (0.0..0.5f64, 0.0..0.5f64),
        ) {
            let points: Vec<Cost> = points.into_iter().map(|(a, b)| [f64::from(a), f64::from(b)]).collect();
            let zone = TradeOffZone::behind(&points, [limits.0, limits.1]);
            let none = TradeOffZone::behind(&points, [0.0, 0.0]);
            for &point in &points {
                let beaten = zone.front().iter().any(|&best| dominates(zone.shifted(best), point));
                prop_assert_eq!(zone.contains(point), !beaten);
                prop_assert!(zone.contains(point) || !none.contains(point));
            }
            for position in pareto_front(&points) {
                prop_assert!(none.contains(points[position]));
            }
        }
    }

    #[test]
    fn without_an_error_the_zone_is_the_front() {
        let front = [[1.0, 10.0], [2.0, 5.0]];
        let zone = TradeOffZone::behind(&front, [0.0, 0.0]);
        assert!(front.iter().all(|point| zone.contains(*point)));
        assert!(!zone.contains([1.0, 10.001]) && !zone.contains([1.001, 10.0]) && !zone.contains([2.5, 5.0]));
        assert!(zone.contains([1.5, 9.999]) && !zone.contains([f64::NAN, 1.0]));
        assert!(!TradeOffZone::behind(&[], [0.1, 0.1]).contains([1.0, 1.0]));
    }
}
