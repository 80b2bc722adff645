//! Step 7: what a person or another program reads: table, JSON, CSV, flamegraph, exports.
