//! All numbers that come out of attribution, of power models, of merging, of tuning and of the choice of meters for made-up
//! machines, kept beside these tests: a net below those that compare with the truth. Where a change alters them on purpose,
//! `cargo insta review` accepts the new ones; each test says by itself how far they may be from what is true.

mod machines;
mod meters;
mod models;
mod tuning;
