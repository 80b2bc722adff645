//! Watts as a linear function of event rates: presets, fit, store, and the periods `R = P / C`.
