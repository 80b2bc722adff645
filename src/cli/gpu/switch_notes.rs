//! Switching times that say another thing than the readings around them.

use eprof::gpu::curve::PowerCurve;
use eprof::gpu::switch_sense::{Contradiction, Place, contradictions};
use eprof::units::{Timestamp, Watts};

/// What is to be said of these times, and what repairs them.
pub fn of(curve: &PowerCurve, switches: &[Timestamp]) -> Vec<String> {
    contradictions(curve, switches).iter().map(|of| describe(of, switches.len())).collect()
}

fn describe(of: &Contradiction, count: usize) -> String {
    let number = |power: Watts| format!("{:.1} W", power.as_watts());
    let (found, load, rest) = (number(of.found), number(of.load), number(of.rest));
    match of.place {
        Place::RestAfterLast => format!(
            "--steps has {count} different times, of which the last would switch the load on, but after it the GPU drew {found}, as at rest \
             ({rest}) and not as at work ({load}): what follows it is as the readings say. If that time is only the \
             program's end, take it out of the file"
        ),
        Place::LoadAfterLast => format!(
            "--steps has {count} different times, of which the last would switch the load off, but after it the GPU drew {found}, as at work \
             ({load}) and not as at rest ({rest}): what follows it is as the readings say. A time may be missing in the \
             file, or one too many"
        ),
        Place::BeforeFirst => format!(
            "the first time of --steps would switch the load on, but before it the GPU drew {found}, as at work ({load}) and not as \
             at rest ({rest}): times of an earlier load may be missing in the file"
        ),
        Place::Between => format!(
            "the GPU drew less where it was at work by --steps ({load}) than at rest ({rest}): the first time in the file is \
             taken for the one at which the load was switched on. If it was switched off then, take that time out"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_was_found_and_what_to_do() {
        let watts = Watts::from_watts;
        let said = |place| {
            describe(
                &Contradiction { place, found: watts(61.04), load: watts(175.0), rest: watts(60.0) },
                153,
            )
        };
        for (place, repair) in [
            (Place::RestAfterLast, "take it out of the file"),
            (Place::LoadAfterLast, "may be missing"),
            (Place::BeforeFirst, "may be missing"),
            (Place::Between, "take that time out"),
        ] {
            let said = said(place);
            assert!(said.contains("--steps") && said.contains("175.0 W") && said.contains(repair), "{said}");
        }
        assert!(
            said(Place::RestAfterLast).contains("153 different times")
                && said(Place::RestAfterLast).contains("61.0 W")
        );
    }
}
