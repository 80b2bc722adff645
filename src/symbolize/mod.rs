//! Beside the pipeline: code addresses to functions, inlined frames and source lines.
