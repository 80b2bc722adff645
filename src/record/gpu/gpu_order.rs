//! Which GPU the recorded program means by CUDA's numbers 0, 1, ...: not the driver's own numbers if the
//! program's environment leaves some out or puts them in another order.

use crate::hardware::{DomainInfo, DomainKind};

/// What of a program's environment decides the order of its GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuEnvironment {
    /// `CUDA_VISIBLE_DEVICES`.
    pub visible: Option<String>,
    /// `CUDA_DEVICE_ORDER`.
    pub order: Option<String>,
}

/// Tells each GPU's domain the number that the program knows it by, where that is certain.
///
/// Without `CUDA_DEVICE_ORDER=PCI_BUS_ID` CUDA puts the fastest GPU first, and nobody says which that
/// is: only for GPUs of one kind the order of the bus is taken, as CUDA does.
pub fn tell(domains: &mut [DomainInfo], environment: &GpuEnvironment) {
    let mut gpus: Vec<(u32, &mut DomainInfo)> = domains
        .iter_mut()
        .filter(|domain| domain.kind == DomainKind::Gpu)
        .filter_map(|domain| Some((domain.name.strip_prefix("gpu-")?.parse().ok()?, domain)))
        .collect();
    let by_bus = environment.order.as_deref() == Some("PCI_BUS_ID");
    let alike = gpus.windows(2).all(|pair| pair[0].1.source == pair[1].1.source);
    if !by_bus && !alike {
        return;
    }
    let visible = match &environment.visible {
        None => None,
        // CUDA stops at the first that is no GPU.
        Some(list) => {
            let numbers = list.split(',').map(|number| number.trim().parse::<u32>());
            let known: Result<Vec<u32>, _> = numbers.collect();
            let Ok(known) = known else { return };
            Some(known)
        }
    };
    for (index, domain) in &mut gpus {
        domain.cuda_ordinal = match &visible {
            None => Some(*index),
            Some(visible) => visible.iter().position(|number| number == index).map(|place| place as u32),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Method;

    fn ordinals(names: &[&str], visible: Option<&str>, order: Option<&str>) -> Vec<Option<u32>> {
        let gpu = |(index, name): (usize, &&str)| {
            DomainInfo::new(format!("gpu-{index}"), DomainKind::Gpu, *name, Method::Measured)
        };
        let mut domains: Vec<DomainInfo> = names.iter().enumerate().map(gpu).collect();
        let text = |text: Option<&str>| text.map(str::to_owned);
        tell(&mut domains, &GpuEnvironment { visible: text(visible), order: text(order) });
        domains.iter().map(|domain| domain.cuda_ordinal).collect()
    }

    #[test]
    fn the_environment_chooses_and_orders() {
        let alike = ["A100", "A100", "A100"];
        assert_eq!(ordinals(&alike, None, None), [Some(0), Some(1), Some(2)]);
        assert_eq!(ordinals(&alike, Some("2, 0"), None), [Some(1), None, Some(0)]);
        assert_eq!(ordinals(&alike, Some("GPU-8932f937"), None), [None; 3]);
        assert_eq!(ordinals(&["A100", "T4"], None, None), [None; 2], "the faster comes first");
        assert_eq!(ordinals(&["A100", "T4"], None, Some("PCI_BUS_ID")), [Some(0), Some(1)]);
    }
}
