//! GPU sensors corrected, GPU power modelled, GPU instructions measured.
