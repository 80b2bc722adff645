//! Where windows lie on the wall clock, which is set now and then, and stands still for nobody who sleeps.
//!
//! Recordings go by CLOCK_MONOTONIC, which rests while the machine is suspended. A window's start on the wall is found by the
//! difference of both clocks as it was when the window before ended; so a step of the wall clock, or a sleep, moves the
//! windows after it and none before. Small differences (the clock is kept in time all day) are not followed: windows
//! would lie upon each other by microseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eprof::units::{Nanoseconds, Timestamp};
use nix::time::{ClockId, clock_gettime};

/// A difference that is followed.
const STEP: i128 = 100_000_000;
/// A sleep that is worth telling.
const NAP: Duration = Duration::from_secs(1);

/// All clocks at one instant, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// The recording's.
    pub monotonic: i128,
    /// The same with the time of sleep.
    pub boot: i128,
    /// Since 1970.
    pub wall: i128,
}

impl Clocks {
    /// Now.
    pub fn now() -> Self {
        let nanos = |clock| {
            clock_gettime(clock)
                .map_or(0, |time| i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec()))
        };
        Self {
            monotonic: nanos(ClockId::CLOCK_MONOTONIC),
            boot: nanos(ClockId::CLOCK_BOOTTIME),
            wall: nanos(ClockId::CLOCK_REALTIME),
        }
    }
}

/// What happened to the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The machine slept so long.
    Slept(Duration),
    /// The wall clock was set by so many nanoseconds beyond that.
    Stepped(i128),
}

/// Places windows on the wall clock.
#[derive(Debug)]
pub struct WallClock {
    /// Wall time less that of the recording.
    offset: i128,
    last: Clocks,
}

impl WallClock {
    /// From now on.
    pub fn new(now: Clocks) -> Self {
        Self { offset: now.wall - now.monotonic, last: now }
    }

    /// When a window began that has just come, and what happened to the clocks in it.
    pub fn place(&mut self, start: Timestamp, now: Clocks) -> (SystemTime, Vec<Event>) {
        let begun = i128::from(start.as_nanos()) + self.offset;
        let mut events = Vec::new();
        let asleep = (now.boot - now.monotonic) - (self.last.boot - self.last.monotonic);
        let asleep = Duration::from_nanos(u64::try_from(asleep).unwrap_or(0));
        if asleep >= NAP {
            events.push(Event::Slept(asleep));
        }
        let moved = (now.wall - now.monotonic) - self.offset;
        if moved.abs() >= STEP {
            self.offset += moved;
            let beyond_sleep = moved - asleep.as_nanos() as i128;
            if beyond_sleep.abs() >= STEP {
                events.push(Event::Stepped(beyond_sleep));
            }
        }
        self.last = now;
        let begun = u64::try_from(begun).unwrap_or(0);
        (UNIX_EPOCH + Duration::from_nanos(begun), events)
    }
}

/// Seconds since 1970.
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// When a window ended that began then.
pub fn end(start: SystemTime, duration: Nanoseconds) -> SystemTime {
    start + Duration::from_nanos(duration.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;

    fn clocks(monotonic: i128, asleep: i128, wall: i128) -> Clocks {
        Clocks { monotonic: monotonic * SECOND, boot: (monotonic + asleep) * SECOND, wall: wall * SECOND }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn windows_follow_each_other_while_the_clock_is_only_kept_in_time() {
        let mut wall = WallClock::new(clocks(100, 0, 1_000_000));
        let mut last = None;
        for minute in 1..50u64 {
            let mut now = clocks(100 + 60 * i128::from(minute), 0, 1_000_000 + 60 * i128::from(minute));
            now.wall += if minute % 2 == 0 { 40_000_000 } else { -40_000_000 };
            let (start, events) = wall.place(at(100 + 60 * (minute - 1)), now);
            assert!(events.is_empty(), "{events:?}");
            assert!(last.is_none_or(|last| last == start), "no gap, and nothing twice");
            last = Some(end(start, Nanoseconds::from_millis(60_000)));
        }
    }

    #[test]
    fn a_step_moves_the_windows_after_it() {
        let mut wall = WallClock::new(clocks(100, 0, 1_000_000));
        let (start, events) = wall.place(at(100), clocks(160, 0, 996_460));
        assert_eq!((unix_seconds(start), events), (1_000_000, vec![Event::Stepped(-3_600 * SECOND)]));
        let (start, events) = wall.place(at(160), clocks(220, 0, 996_520));
        assert_eq!((unix_seconds(start), events), (996_460, vec![]));
    }

    #[test]
    fn a_sleep_is_told_and_is_in_no_window() {
        let mut wall = WallClock::new(clocks(100, 0, 1_000_000));
        let (start, events) = wall.place(at(100), clocks(160, 900, 1_000_960));
        let slept = Event::Slept(Duration::from_secs(900));
        assert_eq!((unix_seconds(start), events), (1_000_000, vec![slept]));
        let (start, events) = wall.place(at(160), clocks(220, 900, 1_001_020));
        assert_eq!((unix_seconds(start), events), (1_000_960, vec![]));
    }
}
