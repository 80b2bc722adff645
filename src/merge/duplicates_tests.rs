//! What is taken once, by hand.

use super::*;
use crate::merge::fixture::{Recorder, World, pid};
use crate::units::Joules;

/// Forty ticks of 10 ms in which three processes spend 1, 2 and 3 J each.
fn world(boot: &'static str) -> World {
    World { boot, static_joules: 0.5, spent: vec![vec![1.0, 2.0, 3.0]; 40] }
}

fn recording(boot: &'static str, recorder: u32, of: &[usize], window: (usize, usize)) -> Profile {
    world(boot).record(&Recorder { pid: recorder, of: of.to_vec(), window })
}

/// Joules of each cell.
fn cells(profile: &Profile) -> Vec<f64> {
    profile.cell_joules.iter().map(|joules| joules.as_joules()).collect()
}

#[test]
fn a_recorders_process_is_left_out_where_it_is_the_recorder() {
    let left = |other: Profile| {
        let mut parts = vec![recording("a", 1, &[0, 1, 2], (0, 20)), other];
        let machines = Machines::of(&parts);
        leave_recorders_out(&mut parts, &machines);
        cells(&parts[0])
    };
    let all = vec![20.0, 40.0, 60.0];
    // Process 2 recorded process 1, at the same time or at a part of it.
    assert_eq!(left(recording("a", pid(2), &[1], (0, 20))), [20.0, 40.0, 0.0]);
    assert_eq!(left(recording("a", pid(2), &[1], (10, 40))), [20.0, 40.0, 0.0]);
    // At another time, on another machine or in another namespace it is another process of that number.
    assert_eq!(left(recording("a", pid(2), &[1], (25, 40))), all);
    assert_eq!(left(recording("b", pid(2), &[1], (0, 20))), all);
    let mut elsewhere = recording("a", pid(2), &[1], (0, 20));
    elsewhere.recordings[0].identity.as_mut().expect("fixtures have one").pid_namespace = Some(9);
    assert_eq!(left(elsewhere), all);
    // What is left out is others', and a recorder that has itself among its processes keeps that.
    let mut parts = vec![recording("a", pid(0), &[0, 1], (0, 20)), recording("a", pid(1), &[2], (0, 20))];
    let machines = Machines::of(&parts);
    let others = parts[0].domains[0].balance.other_processes;
    leave_recorders_out(&mut parts, &machines);
    assert_eq!(cells(&parts[0]), [20.0, 0.0]);
    let balance = parts[0].domains[0].balance;
    assert!((balance.other_processes - others - Joules::from_joules(40.0)).abs().as_joules() < 1e-9);
    assert!((balance.attributed.as_joules() - 20.0).abs() < 1e-9 && balance.holds());
}

/// Of a recording of everything in another namespace it cannot be told which of its processes others recorded.
#[test]
fn only_a_recording_of_everything_has_strangers() {
    let told = |second_boot, of_system: [bool; 2], namespaces: [Option<u64>; 2], second: (usize, usize)| {
        let mut parts = [recording("a", 1, &[0, 1], (0, 20)), recording(second_boot, 2, &[2], second)];
        for ((part, is_of_system), namespace) in parts.iter_mut().zip(of_system).zip(namespaces) {
            let origin = &mut part.recordings[0];
            origin.is_of_system = is_of_system;
            origin.identity.as_mut().expect("fixtures have one").pid_namespace = namespace;
        }
        strangers(&parts, &Machines::of(&parts)).is_some()
    };
    let same = [Some(1), Some(1)];
    let others = [Some(1), Some(2)];
    assert!(told("a", [true, false], others, (0, 20)) && told("a", [false, true], others, (10, 30)));
    assert!(told("a", [true, false], [None, Some(1)], (0, 20)));
    assert!(!told("a", [true, false], same, (0, 20)), "numbers of processes are the same");
    assert!(!told("a", [false, false], others, (0, 20)), "neither recorded everything");
    assert!(!told("b", [true, false], others, (0, 20)), "another machine");
    assert!(!told("a", [true, false], others, (25, 40)), "another time");
    // It is no stranger to itself.
    let mut alone = recording("a", 1, &[0, 1], (0, 20));
    alone.recordings[0].is_of_system = true;
    alone.recordings[0].identity.as_mut().expect("fixtures have one").pid_namespace = None;
    let alone = [alone];
    assert_eq!(strangers(&alone, &Machines::of(&alone)), None);
}
