//! What is this machine? Topology, PMUs and event encodings, energy domains, permissions.
