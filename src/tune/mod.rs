//! The best settings of a program from a dozen runs: model, Pareto front, trade-off zone.
