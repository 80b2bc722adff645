//! Step 4: joules to buckets, to cores, to samples, to stacks.
