//! What holds however little memory there is: sums over a recording's parts are the sums over the whole.

use std::sync::Arc;

use proptest::prelude::*;

use crate::analyze::fixture::{recording_of_left_out_ticks, recording_of_stacks};
use crate::analyze::memory::TableLimits;
use crate::analyze::run::Analysis;
use crate::analyze::{Dimensions, Options};
use crate::profile::{Profile, ProfileParts, VarianceSums};
use crate::profile::{Summed, ThreadIndex};

/// Stacks of a few functions, so that some come again and most do not.
fn any_stacks() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(0u64..6, 0..9), 1..160)
}

const MOST: TableLimits = TableLimits { paths: usize::MAX, cells: usize::MAX, addresses: usize::MAX };

fn any_limits() -> impl Strategy<Value = TableLimits> {
    (0usize..6000, 0usize..6000).prop_map(|(paths, cells)| TableLimits {
        paths,
        cells,
        addresses: usize::MAX,
    })
}

fn any_dimensions() -> impl Strategy<Value = Dimensions> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(stacks, threads, cpus)| Dimensions {
        stacks,
        threads,
        cpus,
    })
}

/// What cells add up to, by what tells them apart: addresses from the innermost on, thread, CPU and event.
type Sums = std::collections::BTreeMap<(Vec<u32>, u32, Option<u32>, u32), (u64, u64, u64, Vec<f64>)>;

fn add(part: &Profile, sums: &mut Sums) {
    for (index, cell) in part.cells.iter().enumerate() {
        let frames = part.stacks.frames(cell.stack).map(|address| address.0).collect();
        let zero = (0, 0, 0, vec![0.0; part.domains.len()]);
        let sum = sums.entry((frames, cell.thread.0, cell.cpu, cell.event)).or_insert(zero);
        sum.0 += cell.samples;
        sum.1 += cell.count;
        sum.2 += cell.time.as_nanos();
        sum.3.iter_mut().zip(part.joules(index)).for_each(|(sum, joules)| *sum += joules.as_joules());
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 + 1e-9 * a.abs().max(b.abs())
}

/// The variances of the joules of threads.
fn variances(parts: &dyn ProfileParts) -> Vec<f64> {
    let profile = parts.profile();
    let mut sums = VarianceSums::new(profile, &[0, 2]).expect("measured joules");
    parts.for_each_part(&mut |part| {
        let summed =
            Summed { profile: part, domains: &[0, 2], takes: &|_, cell| cell.thread != ThreadIndex(7) };
        let code = |cell: usize| Some(part.stacks.innermost(part.cells[cell].stack)?.0 as usize);
        sums.add(&summed, |cell| Some(part.cells[cell].thread.0 as usize), code);
    });
    let found = sums.finish(profile.threads.len());
    assert!(found.iter().all(|of| 0.0 <= of.by_chance && of.by_chance <= of.all), "{found:?}");
    assert!(found.iter().all(|of| of.common == 0.0), "watts were measured: {found:?}");
    found.iter().flat_map(|of| [of.all, of.by_chance]).collect()
}

#[test]
fn what_does_not_fit_comes_in_parts() {
    let stacks: Vec<Vec<u64>> = (0..100).map(|number| vec![number % 10, number / 10]).collect();
    let recording = Arc::new(recording_of_stacks(&stacks));
    let parts = |limits: TableLimits| {
        let analysis = Analysis::with_limits(&recording, &Options::default(), [limits; 2], 0);
        let mut cells = Vec::new();
        analysis.for_each_part(&mut |part| cells.push(part.cells.len()));
        cells
    };
    assert_eq!(parts(MOST), [100]);
    assert_eq!(parts(TableLimits { paths: 0, ..MOST }), [1; 100]);
    let by_paths = parts(TableLimits { paths: 1000, ..MOST });
    assert!(by_paths.len() > 5 && by_paths.len() < 50, "{by_paths:?}");
    assert_eq!(by_paths.iter().sum::<usize>(), 100);
    // Whoever attributes finds too many cells when it has taken a thousand samples.
    assert_eq!(parts(TableLimits { cells: 0, ..MOST }), [100]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn parts_add_up_to_the_whole(
        stacks in any_stacks(),
        dimensions in any_dimensions(),
        [of_whole, of_part] in prop::array::uniform2(any_limits()),
        threads in 1usize..6,
        are_left_out in any::<bool>(),
    ) {
        let recording = match are_left_out {
            true => recording_of_left_out_ticks(&stacks),
            false => recording_of_stacks(&stacks),
        };
        let recording = Arc::new(recording);
        let options = Options { dimensions, threads: Some(threads), ..Options::default() };
        let whole = Analysis::with_limits(&recording, &options, [MOST; 2], 0);
        let parts = Analysis::with_limits(&recording, &options, [of_whole, of_part], 0);
        let (a, b) = (whole.profile(), parts.profile());
        prop_assert!(whole.whole().is_some());
        prop_assert_eq!((&a.addresses, &a.threads, &a.events), (&b.addresses, &b.threads, &b.events));
        prop_assert_eq!((&a.modules, &a.warnings, a.duration), (&b.modules, &b.warnings, b.duration));
        for (a, b) in a.domains.iter().zip(&b.domains) {
            prop_assert!(a.balance.holds() && b.balance.holds());
            prop_assert!(near(a.balance.attributed.as_joules(), b.balance.attributed.as_joules()));
            prop_assert_eq!(a.balance.measured, b.balance.measured);
        }
        let [mut of_whole, mut of_parts] = [Sums::new(), Sums::new()];
        whole.for_each_part(&mut |part| add(part, &mut of_whole));
        parts.for_each_part(&mut |part| add(part, &mut of_parts));
        prop_assert_eq!(of_whole.len(), of_parts.len());
        for ((key, a), (other, b)) in of_whole.iter().zip(&of_parts) {
            prop_assert_eq!((key, a.0, a.1, a.2), (other, b.0, b.1, b.2));
            prop_assert!(a.3.iter().zip(&b.3).all(|(a, b)| near(*a, *b)), "{:?} and {:?}", a.3, b.3);
        }
        // Conservation: what the parts' cells have is what the balance says.
        for (domain, energy) in b.domains.iter().enumerate() {
            let in_cells: f64 = of_parts.values().map(|sum| sum.3[domain]).sum();
            prop_assert!(near(in_cells, energy.balance.attributed.as_joules()));
        }
        for (a, b) in variances(&whole).into_iter().zip(variances(&parts)) {
            prop_assert!((a - b).abs() <= 1e-5 * a.max(1e-12), "{} and {}", a, b);
        }
    }

    /// As long as all of it fits into memory, nothing depends on how many threads there are, however many of them find keys.
    #[test]
    fn workers_change_nothing(
        stacks in prop::collection::vec(prop::collection::vec(0u64..6, 0..9), 300..700),
        dimensions in any_dimensions(),
        most_addresses in prop::sample::select(vec![2, 4, usize::MAX]),
    ) {
        let recording = Arc::new(recording_of_stacks(&stacks));
        let limits = TableLimits { addresses: most_addresses, ..MOST };
        let [alone, others @ ..] = [1, 3, 4, 9].map(|threads| {
            let options = Options { dimensions, threads: Some(threads), ..Options::default() };
            let analysis = Analysis::with_limits(&recording, &options, [limits; 2], 0);
            format!("{:#?}", analysis.profile())
        });
        for other in others {
            prop_assert_eq!(&alone, &other);
        }
    }

    /// The parts do not depend on the number of threads, and neither does whether there are any.
    #[test]
    fn threads_change_nothing(
        stacks in prop::collection::vec(prop::collection::vec(0u64..6, 0..9), 1..400),
        limits in any_limits(),
    ) {
        let recording = Arc::new(recording_of_stacks(&stacks));
        let [alone, others @ ..] = [1, 2, 4, 7].map(|threads| {
            let options = Options { threads: Some(threads), ..Options::default() };
            let analysis = Analysis::with_limits(&recording, &options, [limits; 2], 0);
            let mut parts = Vec::new();
            analysis.for_each_part(&mut |part| parts.push((part.cells.clone(), part.cell_joules.clone())));
            (analysis.whole().is_some(), analysis.profile().warnings.clone(), parts)
        });
        for other in others {
            prop_assert_eq!(&alone, &other);
        }
    }

    /// What buckets have of each cell is what the whole's buckets have.
    #[test]
    fn buckets_add_up(stacks in any_stacks(), [of_whole, of_part] in prop::array::uniform2(any_limits())) {
        let recording = Arc::new(recording_of_stacks(&stacks));
        let options = Options { keep_buckets: true, ..Options::default() };
        let [a, b] = [[MOST; 2], [of_whole, of_part]].map(|limits| {
            let analysis = Analysis::with_limits(&recording, &options, limits, 0);
            let profile = analysis.profile();
            let mut by_slice = vec![0.0; profile.slices.len()];
            analysis.for_each_part(&mut |part| {
                for slice in &part.slices {
                    let at = profile.slices.iter().position(|whole| whole.start == slice.start).expect("a slice");
                    assert!(slice.by_cell.iter().all(|of| (of.cell as usize) < part.cells.len()));
                    by_slice[at] += slice.by_cell.iter().map(|of| f64::from(of.joules)).sum::<f64>();
                }
            });
            by_slice
        });
        prop_assert_eq!(a.len(), b.len());
        prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-5 * a.max(1e-6)), "{:?} and {:?}", a, b);
    }
}
