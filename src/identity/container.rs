//! Containers and pods, from the path of a control group and from what Kubernetes tells its pods.

use serde::{Deserialize, Serialize};

use super::control_groups::ControlGroups;
use super::text::text;

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its id: 64 hexadecimal digits.
    pub id: String,
}

/// A pod of Kubernetes, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its UID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The node that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl Container {
    /// The container of a process, by its groups in all hierarchies: a runtime may have put it into those of some only.
    pub fn of_process(groups: &ControlGroups) -> Option<Self> {
        groups.paths().find_map(Self::of_cgroup)
    }

    /// The container whose control group this is: Docker's, containerd's, CRI-O's and Podman's end in
    /// the id, some with the runtime's name before it and `.scope` behind it. What lies in the container's own groups is its.
    pub fn of_cgroup(path: &str) -> Option<Self> {
        let id = |part| Self::of_part(part).map(|(_, id)| id.to_owned());
        path.rsplit('/').find_map(id).map(|id| Self { id })
    }

    /// What one part of such a path says: the runtime's mark, which may be empty, and the id.
    pub(super) fn of_part(part: &str) -> Option<(&str, &str)> {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        let (mark, id) = part.rsplit_once(['-', ':']).unwrap_or(("", part));
        (id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some((mark, id))
    }
}

impl Pod {
    /// What the control group's path says: `.../pod<UID>/...`, or `...-pod<UID with _ for ->.slice`.
    pub(super) fn uid_of_cgroup(path: &str) -> Option<String> {
        path.split('/').find_map(Self::uid_of_part)
    }

    /// The same of one part of the path. Between the slice and the runtime's own name may be a colon.
    pub(super) fn uid_of_part(part: &str) -> Option<String> {
        let part = part.split_once(':').map_or(part, |(slice, _)| slice);
        let part = part.strip_suffix(".slice").unwrap_or(part);
        let (_, uid) =
            part.rsplit_once("pod").filter(|(start, _)| start.is_empty() || start.ends_with('-'))?;
        let is_uid =
            uid.len() >= 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || b"-_".contains(&byte));
        is_uid.then(|| uid.replace('_', "-"))
    }

    /// The pod of a process in these control groups. `variable` tells its environment, `file` the files of the downward API
    /// that pods are usually given, by their path. `None` outside of Kubernetes.
    pub fn find(
        groups: &ControlGroups,
        hostname: &str,
        variable: impl Fn(&str) -> Option<String>,
        file: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let uid = groups.paths().find_map(Self::uid_of_cgroup);
        if uid.is_none() && variable("KUBERNETES_SERVICE_HOST").is_none() {
            return None;
        }
        // The API has no names of its own for these variables; these are the ones of its manual and of OpenTelemetry's.
        let named = |names: &[&str]| names.iter().find_map(|name| text(&variable(name)?));
        let told = |path: &str| text(&file(path)?);
        let resource = |key: &str| {
            let all = variable("OTEL_RESOURCE_ATTRIBUTES")?;
            all.split(',').find_map(|pair| text(pair.trim().strip_prefix(key)?.strip_prefix('=')?))
        };
        Some(Self {
            name: named(&["POD_NAME", "MY_POD_NAME", "K8S_POD_NAME"])
                .or_else(|| told("/etc/podinfo/name"))
                .or_else(|| resource("k8s.pod.name"))
                // A pod is its own host's name unless it has the node's network.
                .or_else(|| variable("KUBERNETES_SERVICE_HOST").and(text(hostname))),
            namespace: named(&["POD_NAMESPACE", "MY_POD_NAMESPACE", "K8S_NAMESPACE"])
                .or_else(|| told("/etc/podinfo/namespace"))
                .or_else(|| resource("k8s.namespace.name"))
                .or_else(|| told("/var/run/secrets/kubernetes.io/serviceaccount/namespace")),
            uid: named(&["POD_UID", "MY_POD_UID", "K8S_POD_UID"])
                .or_else(|| told("/etc/podinfo/uid"))
                .or(uid),
            node: named(&["NODE_NAME", "MY_NODE_NAME", "K8S_NODE_NAME"])
                .or_else(|| told("/etc/podinfo/nodename"))
                .or_else(|| resource("k8s.node.name")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f4b1c9f0a7e5d2c8b6a4f3e2d1c0b9a8f7e6d5c4b3a291807f6e5d4c3b2a190";

    fn in_group(path: &str) -> ControlGroups {
        ControlGroups::of_file(&format!("0::{path}\n"))
    }

    #[test]
    fn containers_are_known_by_their_groups() {
        for path in [
            format!("/docker/{ID}"),
            format!("/system.slice/docker-{ID}.scope"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope"),
            format!("/kubepods/besteffort/pod12/{ID}"),
            format!("/machine.slice/libpod-{ID}.scope/container"),
            format!("/kubepods-burstable-pod1.slice:cri-containerd:{ID}"),
        ] {
            assert_eq!(Container::of_cgroup(&path), Some(Container { id: ID.to_owned() }), "{path}");
        }
        for path in ["/", "/user.slice/user-1000.slice/session-2.scope", "/docker/short"] {
            assert_eq!(Container::of_cgroup(path), None, "{path}");
        }
    }

    #[test]
    fn pods_are_known_by_their_groups_and_variables() {
        let uid = "2f1c9e3a-7b44-4b1e-9c7e-0d6d5f1f2a3b";
        let none = |_: &str| None;
        let slices =
            format!("/kubepods.slice/kubepods-burstable-pod{}.slice/crio-{ID}.scope", uid.replace('-', "_"));
        for path in [slices, format!("/kubepods/burstable/pod{uid}/{ID}")] {
            let found = Pod::find(&in_group(&path), "host", none, none).expect("a pod");
            assert_eq!(found, Pod { uid: Some(uid.to_owned()), ..Pod::default() });
        }
        assert_eq!(Pod::find(&in_group("/tripod/x"), "host", none, none), None);
        let variable = |name: &str| {
            let value = match name {
                "KUBERNETES_SERVICE_HOST" => "10.0.0.1",
                "POD_NAMESPACE" => "shop",
                "OTEL_RESOURCE_ATTRIBUTES" => "service.name=x,k8s.node.name=worker-3",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let file = |path: &str| (path == "/etc/podinfo/name").then(|| "cart-5d8\n".to_owned());
        let found = Pod::find(&ControlGroups::default(), "host", variable, file).expect("a pod");
        let some = |text: &str| Some(text.to_owned());
        let expected =
            Pod { name: some("cart-5d8"), namespace: some("shop"), uid: None, node: some("worker-3") };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_container_is_known_in_whichever_hierarchy_it_is() {
        let groups = ControlGroups::of_file(&format!("9:perf_event:/\n4:memory:/docker/{ID}\n0::/\n"));
        assert_eq!(Container::of_process(&groups), Some(Container { id: ID.to_owned() }));
        assert_eq!(Container::of_process(&in_group("/")), None);
    }
}
