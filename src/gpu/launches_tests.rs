use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn launch(start: u64, end: u64, owner: u32) -> Outstanding {
    Outstanding { start: ms(start), end: ms(end), owner, gpu: None }
}

/// A counter that moves every 20 ms: 50 W of idling, and watts between two times on top.
fn counter(length: u64, loads: &[(u64, u64, f64)]) -> Vec<(Timestamp, Joules)> {
    let joules_at = |time: u64| {
        let load = |(start, end, watts): &(u64, u64, f64)| {
            watts * time.clamp(*start, *end).saturating_sub(*start) as f64 * 1e-3
        };
        50.0 * time as f64 * 1e-3 + loads.iter().map(load).sum::<f64>()
    };
    // Polled every 10 ms, each refresh is seen twice.
    (0..=length / 10)
        .map(|poll| (ms(poll * 10), Joules::from_joules(joules_at(poll * 10 / 20 * 20))))
        .collect()
}

const REFRESH: Option<Nanoseconds> = Some(Nanoseconds::from_millis(20));

#[track_caller]
fn assert_joules(shares: &Shares, owner: u32, joules: f64) {
    let found = shares.by_owner.get(&owner).expect("an owner").joules.as_joules();
    assert!((found - joules).abs() < 1e-6, "owner {owner}: {found} J, expected {joules} J");
}

#[test]
fn kernels_with_waits_of_their_own_get_what_they_spent() {
    // 100 W for 200 ms, then 20 W for 400 ms.
    let readings = counter(1600, &[(200, 400, 100.0), (800, 1200, 20.0)]);
    let shares = share(&readings, &[launch(200, 400, 3), launch(800, 1200, 5)], REFRESH);
    let idle = shares.idle_power.expect("a level").as_watts();
    assert!((idle - 50.0).abs() < 1e-9, "{idle}");
    assert_joules(&shares, 3, 20.0);
    assert_joules(&shares, 5, 8.0);
    assert!((shares.idle.as_joules() - 80.0).abs() < 1e-6);
    assert_eq!(shares.by_owner[&3].busy, Nanoseconds::from_millis(200));
    assert!(shares.by_owner[&3].variance < 1e-20, "{shares:?}");
}

/// Rests at 50 W and at 52 W, of which 160 and 560 ms lie two refreshes and more behind a launch: 51.6 W on average, 0.8 W more
/// or less.
#[test]
fn a_level_of_idling_that_is_not_the_same_twice_is_in_the_errors() {
    let mut energy = 0.0;
    let watts = |time: u64| match time {
        0..100 | 300..400 => 90.0,
        100..300 => 50.0,
        _ => 52.0,
    };
    let mut readings = Vec::new();
    for time in (0..=1000).step_by(20) {
        readings.push((ms(time), Joules::from_joules(energy)));
        energy += (time..time + 20).map(|time| watts(time) * 1e-3).sum::<f64>();
    }
    let shares = share(&readings, &[launch(0, 100, 1), launch(300, 400, 1)], REFRESH);
    let (first, second) = (160.0, 560.0);
    let mean = (50.0 * first + 52.0 * second) / (first + second);
    let idle = shares.idle_power.expect("a level").as_watts();
    assert!((idle - mean).abs() < 0.1, "{idle} for {mean}");
    let variance = (first * (50.0 - idle).powi(2) + second * (52.0 - idle).powi(2)) / (first + second);
    let error = shares.by_owner[&1].variance.sqrt();
    // For 0.2 s of work.
    assert!((error - 0.2 * variance.sqrt()).abs() < 0.01, "{error}");
}

#[test]
fn a_kernel_shorter_than_a_refresh_gets_what_the_meter_shows_after_it() {
    // It runs from 201 to 206 ms; the meter shows it at 220 ms.
    let readings = counter(600, &[(201, 206, 1000.0)]);
    let shares = share(&readings, &[launch(201, 206, 1)], REFRESH);
    assert_joules(&shares, 1, 5.0);
    // The same, done just before the refresh at 200 ms that does not show it yet.
    let late: Vec<_> =
        readings.iter().map(|(time, energy)| (*time + Nanoseconds::from_millis(20), *energy)).collect();
    assert_joules(&share(&late, &[launch(201, 206, 1)], REFRESH), 1, 5.0);
}

#[test]
fn what_is_outstanding_together_shares() {
    let readings = counter(1000, &[(200, 400, 60.0)]);
    let launches = [launch(200, 400, 1), launch(200, 400, 1), launch(200, 400, 2)];
    let shares = share(&readings, &launches, REFRESH);
    assert_joules(&shares, 1, 8.0);
    assert_joules(&shares, 2, 4.0);
    let busy: u64 = shares.by_owner.values().map(|share| share.busy.as_nanos()).sum();
    assert!((busy as f64 / 200e6 - 1.0).abs() < 1e-6, "no more busy time than time");
    assert!(shares.by_owner[&1].variance > 0.0);
}

#[test]
fn the_idle_level_before_the_context_is_not_the_active_one() {
    // 20 W at first, 50 W once there is a context: readings from the second half on are 50 W.
    let mut energy = 0.0;
    let readings: Vec<_> = (0..100u64)
        .map(|step| {
            energy += if step <= 50 { 0.4 } else { 1.0 };
            (ms(step * 20), Joules::from_joules(energy))
        })
        .collect();
    let shares = share(&readings, &[launch(1001, 1002, 1)], REFRESH);
    assert!((shares.idle_power.expect("a level").as_watts() - 50.0).abs() < 1e-9, "{shares:?}");
}

/// Polls that come at any time of a refresh, and are held up now and then, tell the level all the same.
#[test]
fn idle_power_is_known_from_polls_at_any_time() {
    for shift in 0..40u64 {
        let (mut readings, mut time, mut poll) = (Vec::new(), shift / 2, 0);
        while time < 1500 {
            let energy = 50e-3 * (time / 20 * 20) as f64;
            readings.push((ms(time), Joules::from_joules(energy)));
            poll += 1;
            time += 10 + if (poll + shift) % 9 == 0 { 3 + (poll * 7 + shift) % 17 } else { 0 };
        }
        let launches: Vec<_> = (0..6).map(|i| launch(150 + 250 * i, 220 + 250 * i, 1)).collect();
        let idle = share(&readings, &launches, REFRESH).idle_power.expect("a level").as_watts();
        assert!((idle / 50.0 - 1.0).abs() < 0.04, "polls from {} ms: {idle} W", shift / 2);
    }
}

#[test]
fn a_gpu_that_never_rests_tells_no_idle_level() {
    let readings = counter(400, &[]);
    let shares = share(&readings, &[launch(0, 400, 1)], REFRESH);
    assert_eq!(shares.idle_power, None);
    assert_joules(&shares, 1, 20.0);
    assert_eq!(share(&[], &[launch(0, 1, 1)], None), Shares::default());
}

#[test]
fn a_wait_covers_what_was_launched_before_it_by_its_own_process() {
    let mut tracker = LaunchTracker::default();
    tracker.launch(1, ms(10), 0, None, None);
    tracker.launch(2, ms(11), 1, None, None);
    tracker.wait(100, ms(12), None, WaitFor::All);
    tracker.launch(1, ms(13), 2, None, None);
    tracker.waited(1, 100, ms(20));
    // A return without a call belongs to a wait from before the recording.
    tracker.waited(1, 101, ms(21));
    tracker.ended(2, ms(30));
    assert_eq!(tracker.finish(ms(40)), [launch(10, 20, 0), launch(11, 30, 1), launch(13, 40, 2)]);
}

#[test]
fn a_wait_for_one_gpu_leaves_the_others_work_open() {
    let mut tracker = LaunchTracker::default();
    tracker.launch(1, ms(10), 0, Some(4), None);
    tracker.launch(1, ms(11), 1, Some(5), None);
    tracker.launch(1, ms(12), 2, None, None);
    tracker.wait(100, ms(15), Some(4), WaitFor::All);
    tracker.waited(1, 100, ms(20));
    tracker.wait(100, ms(25), None, WaitFor::All);
    tracker.waited(1, 100, ms(30));
    let on = |gpu, launch: Outstanding| Outstanding { gpu, ..launch };
    let expected = [on(Some(4), launch(10, 20, 0)), on(Some(5), launch(11, 30, 1)), launch(12, 20, 2)];
    assert_eq!(tracker.finish(ms(40)), expected);
}

const ONE: Stream = Stream::Handle(0x51);
const TWO: Stream = Stream::Handle(0x52);

#[test]
fn a_wait_for_a_stream_leaves_the_others_work_open() {
    let mut tracker = LaunchTracker::default();
    tracker.launch(1, ms(10), 0, None, Some(ONE));
    tracker.launch(1, ms(11), 1, None, Some(TWO));
    tracker.launch(1, ms(12), 2, None, None);
    // Of another process, whose handles mean something else.
    tracker.launch(2, ms(12), 3, None, Some(TWO));
    tracker.wait(100, ms(15), None, WaitFor::Stream(TWO));
    tracker.waited(1, 100, ms(20));
    tracker.launch(1, ms(22), 4, None, Some(TWO));
    tracker.wait(100, ms(25), None, WaitFor::All);
    // Within a call that waits for all, one for a stream.
    tracker.wait(100, ms(25), None, WaitFor::Stream(TWO));
    tracker.waited(1, 100, ms(30));
    tracker.waited(1, 100, ms(31));
    let expected =
        [launch(10, 30, 0), launch(11, 20, 1), launch(12, 20, 2), launch(12, 40, 3), launch(22, 30, 4)];
    assert_eq!(tracker.finish(ms(40)), expected);
}

#[test]
fn a_wait_for_an_event_covers_what_was_launched_before_it() {
    let mut tracker = LaunchTracker::default();
    tracker.launch(1, ms(10), 0, None, Some(ONE));
    tracker.record_event(1, 0xe, ONE, ms(11));
    tracker.launch(1, ms(12), 1, None, Some(ONE));
    tracker.launch(1, ms(13), 2, None, Some(TWO));
    tracker.wait(100, ms(14), None, WaitFor::Event(0xe));
    tracker.waited(1, 100, ms(20));
    // Of an event that nobody saw it is not known what comes before it.
    tracker.wait(100, ms(25), None, WaitFor::Event(0xbad));
    tracker.waited(1, 100, ms(30));
    assert_eq!(tracker.finish(ms(40)), [launch(10, 20, 0), launch(12, 30, 1), launch(13, 30, 2)]);
}

#[test]
fn a_stream_that_joins_another_is_done_after_it() {
    let mut tracker = LaunchTracker::default();
    tracker.launch(1, ms(10), 0, None, Some(ONE));
    tracker.record_event(1, 0xe, ONE, ms(11));
    tracker.launch(1, ms(12), 1, None, Some(ONE));
    tracker.join(1, TWO, 0xe, ms(13));
    // Streams may join each other in a circle.
    tracker.record_event(1, 0xf, TWO, ms(13));
    tracker.join(1, ONE, 0xf, ms(13));
    tracker.launch(1, ms(14), 2, None, None);
    tracker.stream_of(1, 2, TWO);
    tracker.wait(100, ms(15), None, WaitFor::Stream(TWO));
    tracker.waited(1, 100, ms(20));
    assert_eq!(tracker.finish(ms(40)), [launch(10, 20, 0), launch(12, 40, 1), launch(14, 20, 2)]);
}

#[test]
fn what_a_stream_joins_later_is_not_waited_for() {
    let mut tracker = LaunchTracker::default();
    tracker.launch(1, ms(10), 0, None, Some(ONE));
    tracker.launch(1, ms(11), 1, None, Some(TWO));
    tracker.record_event(1, 0xe, ONE, ms(12));
    tracker.wait(100, ms(13), None, WaitFor::Stream(TWO));
    // By another thread, while that one waits.
    tracker.join(1, TWO, 0xe, ms(14));
    tracker.waited(1, 100, ms(20));
    assert_eq!(tracker.finish(ms(40)), [launch(10, 40, 0), launch(11, 20, 1)]);
}

/// Steps of 10 J and of 20 J above idling, of which owners have a quarter and three quarters, or half each.
#[test]
fn joules_of_what_is_outstanding_together_could_be_either_owners() {
    let (mut shares, mut doubt) = (Shares::default(), Doubt::default());
    let steps = [(10.0, [(1, 1.0), (2, 3.0)]), (20.0, [(1, 2.0), (2, 2.0)])];
    let steps: Vec<(Joules, Weights)> =
        steps.into_iter().map(|(joules, weights)| (Joules::from_joules(joules), weights.into())).collect();
    let all = Joules::from_joules(30.0);
    Block { energy: all, dynamic: all, steps }.settle(&mut shares, None, &mut doubt);
    assert_joules(&shares, 1, 12.5);
    assert_joules(&shares, 2, 17.5);
    // 100 times 3/16, and 400 times a quarter.
    for owner in [1, 2] {
        assert!((shares.by_owner[&owner].variance - 118.75).abs() < 1e-9, "{shares:?}");
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_made(
        moves in prop::collection::vec((1u64..50, 0.0f64..5.0), 1..60),
        launches in prop::collection::vec((0u64..2000, 0u64..300, 0u32..4), 0..20),
    ) {
        let (mut time, mut energy) = (0, 0.0);
        let readings: Vec<_> = moves.iter().map(|(span, joules)| {
            time += span;
            energy += joules;
            (ms(time), Joules::from_joules(energy))
        }).collect();
        let mut launches: Vec<_> =
            launches.into_iter().map(|(start, length, owner)| launch(start, start + length, owner)).collect();
        launches.sort_by_key(|launch| launch.start);
        let shares = share(&readings, &launches, REFRESH);
        let given: f64 = shares.by_owner.values().map(|share| share.joules.as_joules()).sum();
        let measured = energy - moves[0].1;
        prop_assert!((given + shares.idle.as_joules() - measured).abs() < 1e-9 * measured.max(1.0));
        prop_assert!(shares.idle.as_joules() >= -1e-9);
        prop_assert!(shares.by_owner.values().all(|share| share.joules >= Joules::ZERO));
    }
}

/// Of twenty owners the last five have watts together.
#[test]
fn owners_that_share_a_column_are_unsure_of_their_own_watts() {
    let owners: Vec<(u32, f64)> = (0..20).map(|owner| (owner, 1.0)).collect();
    let watts = KernelWatts::alike(&owners);
    assert!(watts.shares_column(15) && watts.shares_column(19) && !watts.shares_column(14));
    let mut doubt = Doubt::default();
    doubt.add(10.0, &[(0, 0.2), (15, 0.5), (19, 0.3)], &watts);
    // A whole more of its watts is another division of 10 J: 0.5 of them is p, and p (1 - p) what it gains.
    let own = |owner: u32| doubt.own.get(&owner).copied();
    assert_eq!(own(0), None);
    assert!((own(15).expect("shared") - 2.5).abs() < 1e-12 && (own(19).expect("shared") - 2.1).abs() < 1e-12);
    // By the watts of the owner's own column, and by those of the one that both others are in.
    let by_column = |owner: u32, column: usize| doubt.by_column[&(owner, column)];
    assert!((by_column(0, 0) - 1.6).abs() < 1e-12 && (by_column(0, 15) + 1.6).abs() < 1e-12);
    assert!((by_column(15, 0) + 1.0).abs() < 1e-12 && (by_column(15, 15) - 1.0).abs() < 1e-12);
    doubt.add(10.0, &[(15, 1.0)], &watts);
    assert!((doubt.own[&15] - 2.5).abs() < 1e-12, "one alone has all of it");
}

#[test]
fn launches_that_follow_at_once_are_one_time() {
    let times = |launches: &[(u64, u64)]| -> Vec<(u64, u64)> {
        let launches: Vec<Outstanding> =
            launches.iter().map(|(start, end)| launch(*start, *end, 1)).collect();
        let millis = |time: Timestamp| time.as_nanos() / 1_000_000;
        merged(&launches).into_iter().map(|(start, end)| (millis(start), millis(end))).collect()
    };
    assert_eq!(times(&[(0, 10), (10, 20), (21, 30), (22, 25)]), [(0, 20), (21, 30)]);
}
