use proptest::prelude::*;

use super::super::correct::correct;
use super::super::sensor::{SensorKind, SensorModel};
use super::*;
use crate::numerics::random::Random;
use crate::units::{Joules, Timestamp, Watts};

const CONSTANT_MS: u64 = 850;
const PERIOD_MS: u64 = 15;

fn model() -> SensorModel {
    SensorModel::new(SensorKind::Rc { time_constant: Nanoseconds::from_millis(CONSTANT_MS) })
}

/// 40 W, and 200 W from 5 to 10 s and from 13 to 16 s, through a capacitor that is refreshed every 15 ms and polled every
/// 10 ms, with a tenth of a watt of noise.
fn polled(seed: u64) -> Vec<PowerReading> {
    let mut random = Random::seeded(seed);
    let (mut charge, mut shown) = (40.0, 40.0);
    let mut readings = Vec::new();
    for ms in 0..20_000u64 {
        let power = if (5000..10_000).contains(&ms) || (13_000..16_000).contains(&ms) { 200.0 } else { 40.0 };
        charge += (power - charge) * (1.0 - (-1.0 / CONSTANT_MS as f64).exp());
        if ms.is_multiple_of(PERIOD_MS) {
            shown = charge + 0.1 * random.symmetric();
        }
        if ms.is_multiple_of(10) {
            let time = Timestamp::from_nanos(ms * 1_000_000);
            readings.push(PowerReading { time, power: Watts::from_watts(shown) });
        }
    }
    readings
}

/// Joules of the two bursts, and what was left out.
fn corrected(readings: &[PowerReading]) -> ([f64; 2], Option<WrongReadings>) {
    let corrected = correct(&PowerTrace::new(readings.to_vec()), &model()).expect("long enough");
    let at = |ms: u64| Timestamp::from_nanos(ms * 1_000_000);
    let joules = |from, to| -> Joules { corrected.curve().energy(at(from), at(to)) };
    ([joules(4900, 10_100), joules(12_900, 16_100)].map(Joules::as_joules), corrected.wrong)
}

#[test]
fn one_value_that_nothing_can_charge_the_sensor_to_is_left_out() {
    let clean = polled(1);
    let (right, none) = corrected(&clean);
    assert_eq!(none, None);
    // 200 W for 5 and 3 s, and 40 W for 0.2 s each.
    assert!((right[0] - 1008.0).abs() < 8.0 && (right[1] - 608.0).abs() < 6.0, "{right:?}");
    for at in [200, 600, 851, 1301, 1777] {
        for watts in [0.0, 15.0, 300.0, 10_000.0] {
            let mut readings = clean.clone();
            readings[at].power = Watts::from_watts(watts);
            let (joules, wrong) = corrected(&readings);
            let wrong = wrong.expect("told");
            assert_eq!((&wrong.left_out[..], &wrong.kept[..]), (&readings[at..at + 1], &[][..]));
            for (found, right) in joules.into_iter().zip(right) {
                assert!((found - right).abs() < 1.0, "{watts} W at {at}: {found} for {right} J");
            }
        }
    }
}

#[test]
fn a_few_errors_and_some_in_a_row_are_left_out() {
    let clean = polled(2);
    let (right, _) = corrected(&clean);
    let mut readings = clean;
    for (at, watts) in [(300, 0.0), (900, 3.0), (902, 2.0), (904, 1.0), (1500, 400.0), (1501, 410.0)] {
        readings[at].power = Watts::from_watts(watts);
    }
    readings[903].power = Watts::from_watts(1.5);
    let (joules, wrong) = corrected(&readings);
    let wrong = wrong.expect("told");
    assert!(wrong.kept.is_empty(), "{wrong:?}");
    let watts = |reading: &PowerReading| reading.power.as_watts();
    // Between two that are wrong, one that is right may go with them.
    let mut told: Vec<f64> = wrong.left_out.iter().map(watts).collect();
    told.retain(|watts| !(20.0..250.0).contains(watts));
    assert_eq!(told, [0.0, 3.0, 2.0, 1.5, 1.0, 400.0, 410.0]);
    for (found, right) in joules.into_iter().zip(right) {
        assert!((found - right).abs() < 2.0, "{found} for {right} J");
    }
}

/// One in twenty is no error of a log: this is another sensor, or none.
#[test]
fn many_are_told_and_kept() {
    let mut readings = polled(3);
    readings.iter_mut().skip(7).step_by(20).for_each(|reading| reading.power = Watts::from_watts(1.0));
    let trace = PowerTrace::new(readings);
    let refresh = super::super::refresh::infer_period(&trace).expect("changes");
    let (kept, wrong) = left_out(&trace, &refresh, Nanoseconds::from_millis(CONSTANT_MS));
    let wrong = wrong.expect("told");
    assert_eq!((kept, wrong.left_out.len()), (None, 0));
    assert!(wrong.kept.len() > 50, "{}", wrong.kept.len());
}

proptest! {
    /// What a capacitor shows of any load, with its noise and wherever it is polled, is never wrong.
    #[test]
    fn of_a_capacitor_nothing_is_left_out(
        seed in any::<u64>(),
        constant_ms in 60u64..1500,
        levels in prop::collection::vec((30.0f64..700.0, 20u64..2000), 3..20),
        noise in 0.0f64..0.5,
        poll_ms in 2u64..15,
    ) {
        let mut random = Random::seeded(seed);
        let (mut charge, mut shown, mut ms) = (levels[0].0, levels[0].0, 0u64);
        let mut readings = Vec::new();
        for (watts, length) in levels {
            for _ in 0..length {
                charge += (watts - charge) * (1.0 - (-1.0 / constant_ms as f64).exp());
                if ms.is_multiple_of(PERIOD_MS) {
                    shown = charge + noise * random.symmetric();
                }
                if ms.is_multiple_of(poll_ms) {
                    let time = Timestamp::from_nanos(ms * 1_000_000);
                    readings.push(PowerReading { time, power: Watts::from_watts(shown) });
                }
                ms += 1;
            }
        }
        let trace = PowerTrace::new(readings);
        if let Some(refresh) = super::super::refresh::infer_period(&trace) {
            let (_, wrong) = left_out(&trace, &refresh, Nanoseconds::from_millis(constant_ms));
            prop_assert_eq!(wrong, None);
        }
    }
}
