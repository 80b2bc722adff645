use super::*;
use crate::analyze::fixture::metadata;

fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000 + micros * 1000)
}

/// Ten readings a second of 20 W, and a thousand samples a second of a million events.
fn grid(seconds: u64) -> IntervalGrid {
    let metadata = metadata();
    let mut grid = IntervalGrid::new(Some(&metadata), 1);
    for milli in 0..=seconds * 1000 {
        if milli % 10 == 0 {
            grid.reading(0, at(milli * 1000), Joules::from_joules(0.02 * milli as f64));
        }
        grid.sample(0, Some(0), EventUnit::Other, at(milli * 1000), 1_000_000);
    }
    grid.end();
    grid
}

/// The recorder begins to count at its first reading, and writes samples before the readings of their time.
#[test]
fn the_first_interval_has_no_events_of_the_time_before_it() {
    let metadata = metadata();
    let mut grid = IntervalGrid::new(Some(&metadata), 2);
    for round in 0..100u64 {
        for milli in round * 10..(round + 1) * 10 {
            grid.sample(0, Some(0), EventUnit::Cycles, at(milli * 1000 + 1700), 1_000_000);
        }
        // A rarer event, whose first sample comes late in the first interval.
        grid.sample(1, Some(0), EventUnit::Other, at(round * 10_000 + 9900), 10_000_000);
        grid.reading(0, at(round * 10_000), Joules::from_joules(0.2 * round as f64));
    }
    grid.end();
    let rows = grid.of_domains(&[0], Nanoseconds::from_millis(1)).rows;
    for event in 0..2 {
        let rates: Vec<f64> = rows.iter().take(3).map(|row| row.counts[event] / row.seconds / 1e9).collect();
        assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 0.01), "{event}: {rates:?}");
    }
}

/// A CPU that was idle counts nothing before its first sample but what came right before it.
#[test]
fn a_first_sample_after_idle_time_is_not_spread_over_it() {
    let metadata = metadata();
    let mut grid = IntervalGrid::new(Some(&metadata), 1);
    for milli in 0..=1000u64 {
        if milli % 10 == 0 {
            grid.reading(0, at(milli * 1000), Joules::from_joules(0.02 * milli as f64));
        }
        if milli > 500 {
            grid.sample(0, Some(0), EventUnit::Cycles, at(milli * 1000), 1_000_000);
        }
    }
    grid.end();
    let rows = grid.of_domains(&[0], Nanoseconds::from_millis(1)).rows;
    let idle = rows.iter().filter(|row| row.counts[0] == 0.0).count() as f64;
    assert!((idle / rows.len() as f64 - 0.5).abs() < 0.05, "{idle} of {}", rows.len());
    assert!(rows[rows.len() / 4].counts[0] == 0.0);
}

#[test]
fn joules_and_counts_are_spread_over_intervals() {
    let intervals = grid(10).of_domains(&[0], Nanoseconds::from_millis(1));
    let judged = intervals.for_judging();
    assert!((JUDGED - 8..=JUDGED).contains(&judged.rows.len()), "{}", judged.rows.len());
    assert!(intervals.rows.len() > 250 && !intervals.rows[0].follows && intervals.rows[1].follows);
    for row in &judged.rows {
        assert!((row.joules / row.seconds - 20.0).abs() < 1e-6, "{row:?}");
        // The first sample's events have no time before it to be spread over.
        assert!((row.counts[0] / row.seconds / 1e9 - 1.0).abs() < 0.01, "{row:?}");
    }
    // Steady as they come, nothing is hidden between them.
    assert!(intervals.count_noise[0] < 1e6);
}

#[test]
fn memory_does_not_grow_with_the_recording() {
    let grid = grid(200);
    assert!(grid.joules.len() <= MOST * grid.domains.len() && grid.most == MOST);
    let intervals = grid.of_domains(&[0], Nanoseconds::from_millis(1));
    let joules: f64 = intervals.rows.iter().map(|row| row.joules).sum();
    let seconds: f64 = intervals.rows.iter().map(|row| row.seconds).sum();
    assert!((joules / seconds - 20.0).abs() < 1e-6 && seconds > 180.0);
}

#[test]
fn slow_meters_have_long_intervals() {
    let intervals = grid(10).of_domains(&[0], Nanoseconds::from_millis(100));
    assert!(intervals.rows.iter().all(|row| row.seconds >= 0.1));
    assert!(intervals.for_judging().rows.iter().rev().skip(1).all(|row| row.seconds >= 2.0));
}

#[test]
fn a_falling_counter_adds_nothing() {
    let metadata = metadata();
    let mut grid = IntervalGrid::new(Some(&metadata), 1);
    for (milli, joules) in [(0, 5.0), (500, 1.0), (1000, 2.0)] {
        grid.reading(0, at(milli * 1000), Joules::from_joules(joules));
    }
    let total: f64 = grid.joules.iter().sum();
    assert!((total - 1.0).abs() < 1e-9);
}

/// Two packages of one CPU each, of which the second counts three times as much.
#[test]
fn each_package_has_the_counts_of_its_own_cpus() {
    let mut metadata = metadata();
    metadata.domains = vec![metadata.domains[0].clone(), metadata.domains[0].clone()];
    (0..2).for_each(|package| metadata.domains[package].cpus = vec![package as u32]);
    let mut grid = IntervalGrid::new(Some(&metadata), 1);
    for milli in 0..=2000 {
        for package in 0..2usize {
            if milli % 10 == 0 {
                grid.reading(package, at(milli * 1000), Joules::from_joules(0.02 * milli as f64));
            }
            let count = if package == 0 { 1_000_000 } else { 3_000_000 };
            grid.sample(0, Some(package as u32), EventUnit::Other, at(milli * 1000), count);
        }
    }
    let intervals = grid.of_domains(&[0, 1], Nanoseconds::from_millis(1));
    let rows = |term: usize| intervals.rows.iter().filter(move |row| row.static_term == term);
    assert!(rows(0).count() > 10 && rows(1).count() > 10);
    for (term, per_second) in [(0, 1e9), (1, 3e9)] {
        assert!(rows(term).all(|row| (row.counts[0] / row.seconds / per_second - 1.0).abs() < 0.05));
    }
}

/// Once in a while samples are held up and come all at once, as in a virtual machine: where an interval ends meanwhile,
/// its counts lack what is late.
#[test]
fn samples_that_come_late_make_counts_unsure() {
    let metadata = metadata();
    let noise = |late: bool| {
        let mut grid = IntervalGrid::new(Some(&metadata), 2);
        for milli in 0..=5000u64 {
            if milli % 10 == 0 {
                grid.reading(0, at(milli * 1000), Joules::from_joules(0.02 * milli as f64));
            }
            let held_up =
                if late && milli % 100 >= 80 { (100 - milli % 100) * 1000 - (100 - milli % 100) } else { 0 };
            for (event, unit) in [(0, EventUnit::Cycles), (1, EventUnit::Other)] {
                grid.sample(event, Some(0), unit, at(milli * 1000 + held_up), 3_000_000);
            }
        }
        grid.of_domains(&[0], Nanoseconds::from_millis(1)).late_noise
    };
    assert_eq!(noise(false), [0.0, 0.0]);
    let late = noise(true);
    // In a fifth of the time up to twenty samples are missing: the mean square is 27 samples', at both ends of an
    // interval twice as much.
    let expected = 2.0 * 0.2 * 20.0 * 20.0 / 3.0 * 3e6 * 3e6;
    assert!(late.iter().all(|noise| (0.5..2.0).contains(&(noise / expected))), "{late:?} for {expected}");
}
