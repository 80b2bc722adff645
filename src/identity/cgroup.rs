//! What a control group is called: the pod and container, or the service, that its path stands for.

use super::container::{Container, Pod};

/// Hexadecimal digits of a container's id that are shown, as container tools do.
const SHOWN_DIGITS: usize = 12;

/// What the control group of this path is called. Groups of different paths are called differently, but for containers
/// whose ids begin alike. What is neither a pod, a container nor a unit of systemd is called by its path.
pub fn title(path: &str) -> String {
    of_container(path).or_else(|| of_unit(path)).unwrap_or_else(|| path.to_owned())
}

/// `pod UID/containerd 0123456789ab`, and what lies in it.
fn of_container(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let container = parts.iter().rposition(|part| Container::of_part(part).is_some());
    let pod = parts.iter().position(|part| Pod::uid_of_part(part).is_some());
    let last = container.max(pod)?;
    let mut words = Vec::new();
    if let Some(uid) = pod.and_then(|at| Pod::uid_of_part(parts[at])) {
        words.push(format!("pod {uid}"));
    }
    if let Some(at) = container
        && let Some((mark, id)) = Container::of_part(parts[at])
    {
        let above = at.checked_sub(1).map_or("", |above| parts[above]);
        words.push(format!("{} {}", runtime(mark, above), &id[..SHOWN_DIGITS]));
    }
    words.extend(parts[last + 1..].iter().map(|part| (*part).to_owned()));
    Some(words.join("/"))
}

/// The container's runtime, by what stands before the id and by the group above.
fn runtime<'a>(mark: &'a str, above: &'a str) -> &'a str {
    // A slice may stand before the mark: `system.slice:cri-containerd:ID`.
    let mark = mark.rsplit_once(':').map_or(mark, |(_, mark)| mark);
    match (mark, above) {
        ("docker", _) | ("", "docker") => "docker",
        ("cri-containerd" | "nerdctl" | "containerd", _) => "containerd",
        ("crio" | "cri-o", _) => "cri-o",
        ("libpod", _) => "podman",
        ("libpod-conmon", _) => "podman monitor",
        ("crio-conmon", _) => "cri-o monitor",
        _ => "container",
    }
}

/// `nginx.service`, or `app.service of user 1000`, and what lies in it. Above a unit are only slices and the services of
/// users' managers; systemd gives no two units of one manager the same name.
fn of_unit(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let is_slice = |part: &str| part.ends_with(".slice");
    let is_unit = |part: &str| {
        [".service", ".scope", ".socket", ".mount", ".swap"].iter().any(|kind| part.ends_with(kind))
    };
    let user_of = |part: &str| {
        let user = part.strip_prefix("user@")?.strip_suffix(".service")?;
        (!user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit())).then(|| user.to_owned())
    };
    let (mut unit, mut user) = (None, None);
    for (at, part) in parts.iter().enumerate() {
        if is_slice(part) {
            unit = Some(at);
        } else if is_unit(part) {
            unit = Some(at);
            match user_of(part).filter(|_| user.is_none()) {
                // What lies below is of this user's own manager.
                Some(found) => user = Some((at, found)),
                None => break,
            }
        } else {
            break;
        }
    }
    let unit = unit?;
    let mut title = unescaped(parts[unit]);
    if let Some((at, user)) = user
        && at < unit
    {
        title += &format!(" of user {user}");
    }
    for part in &parts[unit + 1..] {
        title += "/";
        title += part;
    }
    Some(title)
}

/// systemd writes bytes that may not stand in a unit's name as `\x2d`.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        bytes.extend(before.bytes());
        match after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend(b"\\x");
                rest = after;
            }
        }
    }
    bytes.extend(rest.bytes());
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "3f4b1c9f0a7e5d2c8b6a4f3e2d1c0b9a8f7e6d5c4b3a291807f6e5d4c3b2a190";
    const UID: &str = "2f1c9e3a-7b44-4b1e-9c7e-0d6d5f1f2a3b";

    #[test]
    fn groups_are_called_by_what_they_stand_for() {
        let with_underlines = UID.replace('-', "_");
        let table = [
            // Docker: by itself, by systemd; and what lies in the container.
            ("/docker/ID", "docker 3f4b1c9f0a7e"),
            ("/system.slice/docker-ID.scope", "docker 3f4b1c9f0a7e"),
            ("/system.slice/docker-ID.scope/init.scope", "docker 3f4b1c9f0a7e/init.scope"),
            // containerd by nerdctl, and of Kubernetes with each driver of control groups.
            ("/system.slice/nerdctl-ID.scope", "containerd 3f4b1c9f0a7e"),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU_ID.slice/cri-containerd-ID.scope",
                "pod UID/containerd 3f4b1c9f0a7e",
            ),
            (
                "/system.slice/containerd.service/kubepods-burstable-podU_ID.slice:cri-containerd:ID",
                "pod UID/containerd 3f4b1c9f0a7e",
            ),
            ("/kubepods/burstable/podUID/ID", "pod UID/container 3f4b1c9f0a7e"),
            ("/kubepods.slice/kubepods-podU_ID.slice", "pod UID"),
            (
                "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podU_ID.slice/cri-containerd-ID.scope",
                "pod UID/containerd 3f4b1c9f0a7e",
            ),
            // CRI-O and its monitor.
            (
                "/kubepods.slice/kubepods-podU_ID.slice/crio-ID.scope/container",
                "pod UID/cri-o 3f4b1c9f0a7e/container",
            ),
            ("/kubepods/podUID/crio-ID", "pod UID/cri-o 3f4b1c9f0a7e"),
            (
                "/kubepods.slice/kubepods-podU_ID.slice/crio-conmon-ID.scope",
                "pod UID/cri-o monitor 3f4b1c9f0a7e",
            ),
            // Podman: of root, of a user.
            ("/machine.slice/libpod-ID.scope/container", "podman 3f4b1c9f0a7e/container"),
            ("/machine.slice/libpod-conmon-ID.scope", "podman monitor 3f4b1c9f0a7e"),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope",
                "podman 3f4b1c9f0a7e",
            ),
            ("/libpod_parent/libpod-ID", "podman 3f4b1c9f0a7e"),
            // Units of systemd.
            ("/system.slice/nginx.service", "nginx.service"),
            ("/system.slice/nginx.service/worker", "nginx.service/worker"),
            (r"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
            (r"/system.slice/dev\x2dhugepages.mount", "dev-hugepages.mount"),
            (r"/system.slice/odd\xzz.service", r"odd\xzz.service"),
            ("/system.slice", "system.slice"),
            ("/init.scope", "init.scope"),
            ("/user.slice/user-1000.slice/session-2.scope", "session-2.scope"),
            ("/user.slice/user-1000.slice/user@1000.service", "user@1000.service"),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-term.scope",
                "app-term.scope of user 1000",
            ),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", "init.scope of user 1000"),
            (
                "/user.slice/user-7.slice/user@7.service/app.slice/a.service/b.service",
                "a.service of user 7/b.service",
            ),
            // None of these.
            ("/", "/"),
            ("", ""),
            ("/slice/pod-abc", "/slice/pod-abc"),
            ("/mine/nginx.service", "/mine/nginx.service"),
            ("/docker/short", "/docker/short"),
            ("[control group 12]", "[control group 12]"),
        ];
        for (path, expected) in table {
            let path = path.replace("U_ID", &with_underlines).replace("UID", UID).replace("ID", ID);
            assert_eq!(title(&path), expected.replace("UID", UID), "{path}");
        }
    }

    proptest! {
        /// Whatever a path is made of, it has a name, and what lies in a group is called otherwise than the group.
        #[test]
        fn each_group_has_a_name_of_its_own(
            parts in prop::collection::vec(prop_oneof![
                Just("system.slice".to_owned()), Just("user@5.service".to_owned()), Just("a.scope".to_owned()),
                Just(format!("docker-{ID}.scope")), Just(format!("pod{UID}")), "[a-z\\\\\u{1b}\u{e9}.@:-]{1,8}",
            ], 1..6),
            inner in "[a-z]{1,5}",
        ) {
            let path = format!("/{}", parts.join("/"));
            prop_assert!(!title(&path).is_empty());
            prop_assert_ne!(title(&format!("{path}/{inner}")), title(&path));
        }
    }
}
