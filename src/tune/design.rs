//! Which settings to run, so that few runs determine the model.

use super::formula::Formula;
use super::model::LogModel;
use super::space::{Role, Space, Variable};
use crate::numerics::random::Random;

/// A uniform sample: every combination of evenly spaced levels, `counts[i]` of variable `i`.
///
/// Both ends of every variable are among them, so that nothing has to be extrapolated; of a variable
/// with one level wanted it is the usual one. Returned are positions of the space, in ascending order.
pub fn uniform(space: &Space, counts: &[usize]) -> Vec<usize> {
    let chosen: Vec<Vec<usize>> =
        space.variables().iter().zip(counts).map(|(variable, &count)| spread(variable, count)).collect();
    combinations(space, &chosen)
}

/// Every combination of chosen levels, `chosen[i]` being positions of levels of variable `i`.
pub fn combinations(space: &Space, chosen: &[Vec<usize>]) -> Vec<usize> {
    let mut positions = vec![Vec::new()];
    for chosen in chosen {
        positions = positions
            .into_iter()
            .flat_map(|head| chosen.iter().map(move |&level| [head.as_slice(), &[level]].concat()))
            .collect();
    }
    positions.iter().map(|coordinates| space.position_at(coordinates)).collect()
}

/// How many levels of each variable a uniform sample takes for this formula: the paper's 4 for
/// threads and nodes (one more than the spline has functions), 3 for the frequency, all of the names;
/// then as many more of the richest variable as leave a third of the runs to tell the error from.
pub fn usual_counts(space: &Space, formula: &Formula) -> Vec<usize> {
    let mut counts = vec![1; space.variables().len()];
    for (index, needed) in formula.levels_needed() {
        let variable = &space.variables()[index];
        let wanted = if variable.role == Role::Frequency { needed.max(3) } else { needed };
        counts[index] = wanted.min(variable.levels().len());
    }
    let enough = (3 * formula.coefficients()).div_ceil(2);
    while counts.iter().product::<usize>() < enough {
        let left = |index: &usize| space.variables()[*index].levels().len() - counts[*index];
        let used = formula.levels_needed().into_iter().map(|(index, _)| index);
        match used.max_by_key(left) {
            Some(index) if left(&index) > 0 => counts[index] += 1,
            _ => break,
        }
    }
    counts
}

/// A latin hypercube of `count` settings: each variable's levels are divided into `count` strata, and
/// every stratum is used once. Settings that coincide on a coarse grid are drawn again where possible.
pub fn latin_hypercube(space: &Space, count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::seeded(seed);
    let count = count.min(space.size());
    let mut best: Vec<usize> = Vec::new();
    for _ in 0..100 {
        let strata: Vec<Vec<usize>> = space
            .variables()
            .iter()
            .map(|variable| {
                let levels = variable.levels().len();
                let mut strata: Vec<usize> = (0..count).collect();
                random.shuffle(&mut strata);
                let level = |stratum: usize, within: f64| {
                    ((stratum as f64 + within) * levels as f64 / count as f64) as usize
                };
                strata.into_iter().map(|stratum| level(stratum, random.uniform()).min(levels - 1)).collect()
            })
            .collect();
        let mut positions: Vec<usize> = (0..count)
            .map(|n| space.position_at(&strata.iter().map(|levels| levels[n]).collect::<Vec<_>>()))
            .collect();
        positions.sort_unstable();
        positions.dedup();
        if positions.len() > best.len() {
            best = positions;
        }
        if best.len() == count {
            break;
        }
    }
    best
}

/// `count` different settings at random.
pub fn random(space: &Space, count: usize, seed: u64) -> Vec<usize> {
    random_among((0..space.size()).collect(), count, seed)
}

/// `count` different settings of these at random.
pub fn random_among(mut positions: Vec<usize>, count: usize, seed: u64) -> Vec<usize> {
    Random::seeded(seed).shuffle(&mut positions);
    positions.truncate(count);
    positions.sort_unstable();
    positions
}

/// The candidate whose prediction is the least certain under the model; the first of equals.
///
/// Its variance depends only on where the runs lie, not on what they measured, so one model stands
/// for both responses.
pub fn next_best(
    space: &Space,
    model: &LogModel,
    candidates: impl IntoIterator<Item = usize>,
) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for position in candidates {
        let variance = model.leverage_of(&space.setting(position));
        if best.is_none_or(|(most, _)| variance > most * (1.0 + 1e-9)) {
            best = Some((variance, position));
        }
    }
    best.map(|(_, position)| position)
}

/// Positions of `count` levels of a variable, evenly spaced with both ends; the usual one if only one
/// is wanted.
pub fn spread(variable: &Variable, count: usize) -> Vec<usize> {
    let levels = variable.levels().len();
    match count.min(levels) {
        0 | 1 => vec![variable.position(variable.usual_level()).unwrap_or(0)],
        count => (0..count).map(|n| (2 * n * (levels - 1) + count - 1) / (2 * (count - 1))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::super::runs::{Axis, Measurements, Responses, Run};
    use super::*;

    fn space(variables: &[&str]) -> Space {
        Space::new(variables.iter().map(|text| parse_named_variable(text).expect("valid")).collect())
            .expect("valid")
    }

    fn shown(space: &Space, positions: &[usize]) -> Vec<String> {
        positions.iter().map(|&position| space.show(&space.setting(position))).collect()
    }

    #[test]
    fn twelve_runs_of_the_papers_space() {
        let space = space(&["threads=4..44:4", "freq=1.2..2.2GHz"]);
        let formula = Formula::usual(&space);
        assert_eq!(usual_counts(&space, &formula), [4, 3]);
        let runs = uniform(&space, &[4, 3]);
        assert_eq!(runs.len(), 12);
        assert_eq!(
            shown(&space, &runs)[..4],
            [
                "threads=4 freq=1.2GHz",
                "threads=4 freq=1.7GHz",
                "threads=4 freq=2.2GHz",
                "threads=16 freq=1.2GHz"
            ]
        );
        assert!(runs.contains(&space.position(&space.usual_setting()).expect("in the space")));
    }

    #[test]
    fn counts_follow_the_formula() {
        let counts = |variables: &[&str]| {
            let space = space(variables);
            usual_counts(&space, &Formula::usual(&space))
        };
        assert_eq!(counts(&["nodes=20,42,64,86", "threads=4..44:4", "freq=1.2..2.2GHz"]), [4, 4, 3]);
        assert_eq!(counts(&["threads=1..16"]), [6]);
        assert_eq!(counts(&["threads=1..2"]), [2]);
        assert_eq!(counts(&["threads=1..16", "flags=a,b,c"]), [4, 3]);
        assert_eq!(counts(&["threads=4", "freq=1..3GHz"]), [1, 3]);
    }

    #[test]
    fn a_latin_hypercube_uses_every_stratum_once() {
        let space = space(&["threads=1..12", "freq=1.2..2.3GHz"]);
        let runs = latin_hypercube(&space, 12, 7);
        assert_eq!(runs.len(), 12);
        for variable in 0..2 {
            let mut used: Vec<usize> =
                runs.iter().map(|&position| space.coordinates(position)[variable]).collect();
            used.sort_unstable();
            assert_eq!(used, (0..12).collect::<Vec<_>>());
        }
    }

    #[test]
    fn random_settings_differ_and_repeat_with_the_seed() {
        let space = space(&["threads=1..12", "freq=1.2..2.3GHz"]);
        let runs = random(&space, 20, 1);
        assert_eq!(runs.len(), 20);
        assert!(runs.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(runs, random(&space, 20, 1));
        assert_ne!(runs, random(&space, 20, 2));
        assert_eq!(random(&space, 1000, 1).len(), 144);
    }

    #[test]
    fn the_next_run_is_the_corner_that_nobody_has_seen() {
        let space = space(&["x=0..2", "freq=1,2,3"]);
        let formula = Formula::parse("x + freq", &space).expect("valid");
        let runs: Vec<Run> =
            [0, 1, 3].map(|position| Run { setting: space.setting(position), values: [1.0, 1.0] }).into();
        let measured = Measurements::gather(Responses::Totals, &runs).expect("valid");
        let model = LogModel::fit(&formula, &space, &measured, Axis::Speed).expect("determined");
        assert_eq!(next_best(&space, &model, 0..space.size()), Some(8));
        assert_eq!(next_best(&space, &model, []), None);
    }
}
