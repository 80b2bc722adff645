//! Step 3: one stream in time order; tasks and mappings replayed.
