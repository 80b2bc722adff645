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

/// What was spread evenly over these times, by interval of a grid, one nanosecond-exact overlap at a time.
fn spread_by_hand(grid: &IntervalGrid, parts: &[(u64, u64, f64)], intervals: usize) -> Vec<f64> {
    let origin = grid.origin.expect("something came");
    let share = |interval: usize, &(from, to, amount): &(u64, u64, f64)| {
        let (start, end) =
            (origin + interval as u64 * grid.width, origin + (interval as u64 + 1) * grid.width);
        // What takes no time lies in one interval; what lies before the beginning is lost.
        match to > from.max(origin) {
            true => amount * to.min(end).saturating_sub(from.max(start)) as f64 / (to - from) as f64,
            false => {
                if (start..end).contains(&to) {
                    amount
                } else {
                    0.0
                }
            }
        }
    };
    (0..intervals).map(|interval| parts.iter().map(|part| share(interval, part)).sum()).collect()
}

fn column(values: &[f64], columns: usize, column: usize) -> Vec<f64> {
    values.iter().skip(column).step_by(columns.max(1)).copied().collect()
}

/// Two packages, two events; times are drawn, some of them before what came first, for a minute and for an hour.
#[test]
fn nothing_is_lost_or_moved_however_long_the_recording() {
    let mut random = crate::numerics::random::Random::seeded(3);
    for seconds in [3u64, 60, 4000] {
        let mut metadata = metadata();
        metadata.domains.truncate(2);
        (0..2).for_each(|package| metadata.domains[package].cpus = vec![package as u32]);
        let mut grid = IntervalGrid::new(Some(&metadata), 2);
        let second = 1_000_000_000;
        let begin = 100 * second;
        let (mut joules, mut lost, mut counts) = ([vec![], vec![]], vec![], vec![]);
        let mut readings = [(begin + second / 3, 0.0), (begin, 0.0)];
        for _ in 0..300 {
            for package in 0..2 {
                let (last, energy) = readings[package];
                let time = last + 1 + (random.uniform() * seconds as f64 / 300.0 * second as f64) as u64;
                let more = random.uniform();
                grid.reading(package, Timestamp::from_nanos(time), Joules::from_joules(energy + more));
                // The first reading begins the curve.
                if joules[package].is_empty() && energy == 0.0 {
                    joules[package].push((time, time, 0.0));
                } else {
                    joules[package].push((last, time, more));
                }
                readings[package] = (time, energy + more);
            }
            let start = begin + (random.uniform() * seconds as f64 * second as f64) as u64;
            let end = start + (random.uniform() * 0.02 * second as f64) as u64;
            let times = (Timestamp::from_nanos(start), Timestamp::from_nanos(end));
            grid.lost_records(Some(1), times.0, times.1);
            lost.push((start, end, (end - start) as f64));
            grid.spread_count(1, Some(0), times, 500);
            counts.push((start, end, 500.0));
        }
        let intervals = grid.joules.len() / 2;
        assert!(intervals <= MOST, "{intervals}");
        let tables = [
            ("joules of 0", &joules[0], column(&grid.joules, 2, 0)),
            ("joules of 1", &joules[1], column(&grid.joules, 2, 1)),
            ("lost", &lost, column(&grid.lost, 2, 1)),
            ("counts", &counts, column(&grid.counts, 4, 1)),
        ];
        for (what, parts, found) in tables {
            let expected = spread_by_hand(&grid, parts, intervals);
            let scale = expected.iter().fold(1e-9, |most: f64, value| most.max(value.abs()));
            for (interval, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let off = (found - expected).abs() / scale;
                assert!(off < 1e-7, "{what} of {seconds} s, interval {interval}: {found} for {expected}");
            }
        }
        assert!(column(&grid.lost, 2, 0).iter().all(|lost| *lost == 0.0));
        assert!(
            [0, 2, 3].iter().all(|other| column(&grid.counts, 4, *other).iter().all(|count| *count == 0.0))
        );
    }
}

/// A file may have a meter's first reading behind samples that were taken later.
#[test]
fn a_grid_begins_with_the_first_reading() {
    let metadata = metadata();
    let reading = |millis: u64| Timestamp::from_nanos(20_000_000_000 + millis * 1_000_000);
    let mut grid = IntervalGrid::new(Some(&metadata), 1);
    grid.sample(0, Some(0), EventUnit::Other, reading(500), 10);
    grid.sample(0, Some(0), EventUnit::Other, reading(600), 10);
    grid.reading(0, reading(100), Joules::ZERO);
    let origin = grid.origin.expect("a time");
    assert!(origin <= reading(100).as_nanos() && origin + grid.width > reading(100).as_nanos(), "{origin}");
    grid.reading(0, reading(200), Joules::from_joules(3.0));
    assert!((grid.joules.iter().sum::<f64>() - 3.0).abs() < 1e-9);
    assert!((grid.counts.iter().sum::<f64>() - 10.0).abs() < 1e-9, "a first sample is spread in the end");
    // A second meter may come earlier still, but not by more than a recorder's round.
    grid.reading(1, Timestamp::from_nanos(1_000_000_000), Joules::ZERO);
    assert_eq!(grid.origin, Some(origin));
    grid.reading(2, reading(0), Joules::ZERO);
    assert!(grid.origin.is_some_and(|origin| origin <= reading(0).as_nanos()));
    assert!((grid.joules.iter().sum::<f64>() - 3.0).abs() < 1e-9);
}

/// 20 W for 10 s, read every 10 ms: what an interval has and how well it is known, by hand.
#[test]
fn intervals_are_known_as_well_as_readings_and_samples_allow() {
    let grid = grid(10);
    let intervals = grid.of_domains(&[0], Nanoseconds::from_millis(1));
    // Three readings are 30 ms, four of the shortest intervals.
    assert_eq!(grid.width, 1 << 23);
    let width = 4.0 * f64::from(1 << 23) * 1e-9;
    assert!(intervals.rows.iter().all(|row| (row.seconds - width).abs() < 1e-12));
    let between = 10.0 / 1001.0;
    let unsure = (1e-6f64 / 12.0 + (0.055 * between * 1.0f64).powi(2)).sqrt();
    assert!(
        (intervals.edge_noise / (2.0 * (20.0 * unsure).powi(2)) - 1.0).abs() < 1e-6,
        "{}",
        intervals.edge_noise
    );
    // A 64th of the recording is 0.156 s, five such intervals.
    assert_eq!((intervals.judged_together, intervals.static_terms), (5, 1));
    let two = grid.of_domains(&[0, 7], Nanoseconds::from_millis(1));
    assert_eq!((two.static_terms, two.rows.len()), (2, intervals.rows.len()));
    let lasting = grid.of_domains(&[0], Nanoseconds::from_millis(40));
    assert!((lasting.rows[0].seconds - 5.0 * f64::from(1 << 23) * 1e-9).abs() < 1e-12);
    // Twenty refreshes of 40 ms are 0.8 s.
    assert_eq!(lasting.judged_together, 20);
}

#[test]
fn lost_records_leave_counts_guessed() {
    let metadata = metadata();
    let mut grid = IntervalGrid::new(Some(&metadata), 1);
    for milli in 0..=1000 {
        if milli % 10 == 0 {
            grid.reading(0, at(milli * 1000), Joules::from_joules(0.02 * milli as f64));
        }
        (0..2).for_each(|cpu| grid.sample(0, Some(cpu), EventUnit::Cycles, at(milli * 1000), 1_000_000));
    }
    grid.lost_records(Some(1), at(400_000), at(500_000));
    grid.end();
    let rows = grid.of_domains(&[0], Nanoseconds::from_millis(1)).rows;
    let guessed: f64 = rows.iter().map(|row| row.guessed * row.seconds).sum();
    // A tenth of a second of one of two CPUs.
    assert!((guessed - 0.05).abs() < 1e-9, "{guessed}");
    assert!(rows.iter().all(|row| row.busy == row.counts[0] && row.guessed <= 0.5 + 1e-9));
}

/// A million numbers are the most, of all columns together: each group of CPUs has all events, each domain its joules.
#[test]
fn a_grid_is_as_long_as_its_columns_allow() {
    let most = |domains: usize, apart: bool, events: usize| {
        let mut metadata = metadata();
        metadata.domains = vec![metadata.domains[0].clone(); domains];
        if apart {
            metadata.domains.iter_mut().zip(0..).for_each(|(domain, cpu)| domain.cpus = vec![cpu]);
        }
        IntervalGrid::new(Some(&metadata), events).most
    };
    assert_eq!(most(1, false, 4), 16384);
    // Two groups of 200 events and two domains are 402 columns; one group of three domains and 400 events 403.
    assert_eq!((most(2, true, 200), most(3, false, 400)), ((1 << 20) / 402, (1 << 20) / 403));
    assert_eq!((most(8, true, 1000), IntervalGrid::new(None, 0).most), (256, 16384));
}
