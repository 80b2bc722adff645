use eprof::tune::accuracy::front_error;
use eprof::tune::design;
use eprof::tune::formula::{Formula, Scale};
use eprof::tune::front::pareto_front;
use eprof::tune::levels::parse_named_variable;
use eprof::tune::model::LogModel;
use eprof::tune::random::Random;
use eprof::tune::runs::{AXES, Axis, Measurements, Responses, Run};
use eprof::tune::space::{Setting, Space};
use eprof::tune::zone::TradeOffZone;

struct Kernel {
    name: &'static str,
    /// work per core, GHz
    core: f64,
    bandwidth: f64,
    saturation: f64,
    sharpness: f64,
    bw_freq: f64,
    scaling: f64,
    contention: f64,
    mem_watts: f64,
}

const KERNELS: [Kernel; 3] = [
    Kernel {
        name: "stencil",
        core: 1.0,
        bandwidth: 36.0,
        saturation: 10.0,
        sharpness: 2.5,
        bw_freq: 0.35,
        scaling: 0.97,
        contention: 0.25,
        mem_watts: 40.0,
    },
    Kernel {
        name: "transpose",
        core: 1.0,
        bandwidth: 24.0,
        saturation: 8.0,
        sharpness: 2.0,
        bw_freq: 0.4,
        scaling: 0.80,
        contention: 0.20,
        mem_watts: 50.0,
    },
    Kernel {
        name: "nstream",
        core: 2.5,
        bandwidth: 38.0,
        saturation: 7.0,
        sharpness: 2.5,
        bw_freq: 0.3,
        scaling: 0.995,
        contention: 0.12,
        mem_watts: 60.0,
    },
];

impl Kernel {
    fn truth(&self, setting: &Setting) -> [f64; 2] {
        let at = |i: usize| setting.0[i].number().unwrap();
        let (n, c, f) = (at(0), at(1), at(2));
        let compute = self.core * c * f;
        let memory = self.bandwidth * (1.0 - (-c / self.saturation).exp()) * (f / 2.2).powf(self.bw_freq);
        let node = (compute.powf(-self.sharpness) + memory.powf(-self.sharpness)).powf(-1.0 / self.sharpness)
            / (1.0 + self.contention * (c / 44.0).powi(2));
        let perf = 1000.0 * node * n.powf(self.scaling);
        let volts = 0.55 + 0.2 * f;
        let busy = 0.5 + 0.5 * node / compute;
        let watts =
            80.0 + c * 6.0 * f / 2.2 * (volts / 0.99).powi(2) * busy + self.mem_watts * node / self.bandwidth;
        [perf, perf / (n * watts)]
    }
}

fn gauss(r: &mut Random) -> f64 {
    (-2.0 * (1.0 - r.unit()).ln()).sqrt() * (2.0 * std::f64::consts::PI * r.unit()).cos()
}

#[test]
fn explore() {
    let space = Space::new(
        ["nodes=20,42,64,86", "threads=4..44:4", "freq=1.2..2.2GHz"]
            .iter()
            .map(|t| parse_named_variable(t).unwrap())
            .collect(),
    )
    .unwrap();
    let by_levels = |c: &[usize], f: &[usize]| -> Vec<usize> {
        let mut v = Vec::new();
        for n in 0..4 {
            for &c in c {
                for &f in f {
                    v.push(space.position_at(&[n, c, f]));
                }
            }
        }
        v
    };
    let designs: Vec<(&str, Vec<usize>)> = vec![
        ("paper", by_levels(&[1, 4, 7, 10], &[0, 6, 10])),
        ("ends", design::uniform(&space, &[4, 4, 3])),
    ];
    for k in &KERNELS {
        let truth: Vec<[f64; 2]> = space.settings().map(|s| k.truth(&s)).collect();
        let d = space.position(&space.usual_setting()).unwrap();
        // shape
        let n64: Vec<usize> = (0..484).filter(|&p| space.coordinates(p)[0] == 2).collect();
        let best = n64
            .iter()
            .filter(|&&p| truth[p][0] > 0.8 * truth[d - 121][0])
            .map(|&p| truth[p][1])
            .fold(0.0, f64::max);
        let tz = TradeOffZone::behind(
            &n64.iter().map(|&p| truth[p].map(|v| 1.0 / v)).collect::<Vec<_>>(),
            [0.05, 0.05],
        );
        println!(
            "true zone {:.1} front {}",
            n64.iter().filter(|&&p| tz.contains(truth[p].map(|v| 1.0 / v))).count() as f64 / 1.21,
            tz.front().len()
        );
        for c in 0..11 {
            for f in [0, 5, 10] {
                let t = truth[242 + c * 11 + f];
                print!(" {:9.0}/{:6.0}", t[0], t[1] * 1.0);
            }
            println!();
        }
        println!(
            "{}: eff gain at <20% loss: {:.3}; perf range {:.0}..{:.0}",
            k.name,
            best / truth[d - 121][1],
            truth[2 * 121][0],
            truth[d - 121][0]
        );
        for noise in [0.0, 0.05] {
            for (name, design) in &designs {
                for scale in [Scale::Plain, Scale::Logarithmic] {
                    let formula = Formula::usual(&space, scale);
                    let mut sums = [0.0; 14];
                    let seeds = if noise == 0.0 { 1 } else { 20 };
                    for seed in 0..seeds {
                        let mut r = Random::seeded(seed);
                        let runs: Vec<Run> = design
                            .iter()
                            .map(|&p| Run {
                                setting: space.setting(p),
                                values: truth[p].map(|v| v * (noise * gauss(&mut r)).exp()),
                            })
                            .collect();
                        let m = Measurements::gather(Responses::Rates, &runs).unwrap();
                        let models = AXES.map(|a| LogModel::fit(&formula, &space, &m, a).unwrap());
                        let pred: Vec<[f64; 2]> = space
                            .settings()
                            .map(|s| [models[0].predict(&s, 0.95).value, models[1].predict(&s, 0.95).value])
                            .collect();
                        for a in 0..2 {
                            sums[a] += (truth
                                .iter()
                                .zip(&pred)
                                .map(|(t, p)| (p[a] / t[a] - 1.0).powi(2))
                                .sum::<f64>()
                                / 484.0)
                                .sqrt();
                            sums[2 + a] +=
                                (models[a].leave_one_out().iter().map(|e| e.unwrap().powi(2)).sum::<f64>()
                                    / 48.0)
                                    .sqrt();
                        }
                        // fronts per node count
                        for n in 0..4 {
                            let cost = |v: &Vec<[f64; 2]>| -> Vec<[f64; 2]> {
                                v[n * 121..(n + 1) * 121].iter().map(|p| p.map(|x| 1.0 / x)).collect()
                            };
                            let (t, p) = (cost(&truth), cost(&pred));
                            let e = front_error(&t, &p).unwrap();
                            sums[4] += e[0] / 4.0;
                            sums[5] += e[1] / 4.0;
                            let loo = [0, 1].map(|a| {
                                (models[a].leave_one_out().iter().map(|e| e.unwrap().powi(2)).sum::<f64>()
                                    / 48.0)
                                    .sqrt()
                            });
                            let _ = loo;
                            let se = [0, 1].map(|a| {
                                let v = models[a].least_squares().residual_variance().unwrap();
                                let l: f64 =
                                    space.settings().map(|s| models[a].leverage_of(&s)).sum::<f64>() / 484.0;
                                (v * l).sqrt()
                            });
                            for (zi, k) in [0.5, 1.0, 1.96].into_iter().enumerate() {
                                let zone = TradeOffZone::behind(&p, se.map(|s| k * s));
                                let f = pareto_front(&t);
                                sums[8 + 2 * zi] += f.iter().filter(|&&i| zone.contains(p[i])).count() as f64
                                    / f.len() as f64
                                    / 4.0;
                                sums[9 + 2 * zi] +=
                                    p.iter().filter(|&&q| zone.contains(q)).count() as f64 / 121.0 / 4.0;
                            }
                            let zone = TradeOffZone::behind(&p, [0.05, 0.05]);
                            let f = pareto_front(&t);
                            sums[6] += f.iter().filter(|&&i| zone.contains(p[i])).count() as f64
                                / f.len() as f64
                                / 4.0;
                            sums[7] += p.iter().filter(|&&q| zone.contains(q)).count() as f64 / 121.0 / 4.0;
                        }
                    }
                    let s = sums.map(|x| 100.0 * x / seeds as f64);
                    println!(
                        "  noise {noise} {name:7} {scale:?} rms perf {:.2} eff {:.2} | loo {:.2} {:.2} | front perf {:.2} eff {:.2} | zone5 holds {:.1} is {:.1} | .5s {:.1} {:.1} | 1s {:.1} {:.1} | 2s {:.1} {:.1}",
                        s[0],
                        s[1],
                        s[2],
                        s[3],
                        s[4],
                        s[5],
                        s[6],
                        s[7],
                        s[8],
                        s[9],
                        s[10],
                        s[11],
                        s[12],
                        s[13]
                    );
                }
            }
        }
    }
    let _ = Axis::Speed;
}
