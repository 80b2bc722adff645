//! Tests of tasks.

use super::*;

fn mmap(pid: u32, address: u64, path: &'static str) -> Mmap<'static> {
    Mmap {
        pid,
        tid: pid,
        address,
        length: 0x1000,
        file_offset: 0x2000,
        path: path.as_bytes(),
        mode: CpuMode::User,
        is_data: false,
        protection: None,
        identity: FileIdentity::Unknown,
    }
}

fn path_at(tasks: &mut Tasks, pid: u32, address: u64) -> (String, u64) {
    let task = tasks.task(pid, pid);
    let code = tasks.locate(task, CpuMode::User, address);
    (tasks.modules()[code.module.0 as usize].path.clone(), code.address)
}

#[test]
fn a_child_sees_its_parents_mappings_until_it_execs() {
    let mut tasks = Tasks::default();
    tasks.map(&mmap(10, 0x5000, "/bin/sh"));
    tasks.fork(&TaskChange { pid: 11, tid: 11, parent_pid: 10, parent_tid: 10 });
    assert_eq!(path_at(&mut tasks, 11, 0x5010), ("/bin/sh".into(), 0x2010));
    tasks.rename(11, 11, b"ls", true);
    assert_eq!(path_at(&mut tasks, 11, 0x5010), ("[unknown]".into(), 0x5010));
    assert_eq!(path_at(&mut tasks, 10, 0x5010), ("/bin/sh".into(), 0x2010));
    assert!(tasks.descends_from(11, 10));
    assert!(!tasks.descends_from(10, 11));
}

#[test]
fn a_state_of_memory_ends_when_an_address_changes_its_meaning() {
    let mut tasks = Tasks::default();
    tasks.map(&mmap(10, 0x5000, "/lib/a.so"));
    let task = tasks.task(10, 10);
    let first = tasks.space_id(task);
    tasks.map(&mmap(10, 0x9000, "/lib/b.so"));
    assert_eq!(tasks.space_id(task), first, "nothing known changed");
    tasks.map(&mmap(10, 0x5000, "/lib/c.so"));
    assert_ne!(tasks.space_id(task), first, "a.so was replaced");
    let second = tasks.space_id(task);
    tasks.locate(task, CpuMode::User, 0xf000);
    tasks.map(&mmap(10, 0xf000, "/lib/d.so"));
    assert_ne!(tasks.space_id(task), second, "an unknown address became known");
}

#[test]
fn tasks_that_have_no_number_any_more_are_one_without_numbers() {
    let mut tasks = Tasks::default();
    let ended = tasks.task(u32::MAX, u32::MAX);
    assert_eq!(tasks.task(u32::MAX, u32::MAX), ended);
    let thread = &tasks.threads()[tasks.thread(ended).0 as usize];
    assert_eq!((thread.title(), thread.process_title()), (ENDED_TASKS_NAME.into(), ENDED_TASKS_NAME.into()));
}

#[test]
fn threads_share_memory_but_not_names() {
    let mut tasks = Tasks::default();
    tasks.rename(10, 10, b"server", true);
    tasks.fork(&TaskChange { pid: 10, tid: 12, parent_pid: 10, parent_tid: 10 });
    tasks.rename(10, 12, b"worker", false);
    tasks.map(&mmap(10, 0x5000, "/bin/server"));
    let worker = tasks.task(10, 12);
    assert_eq!(tasks.space(worker).locate(0x5000).map(|located| located.address), Some(0x2000));
    let thread = &tasks.threads()[tasks.thread(worker).0 as usize];
    assert_eq!((thread.name.as_str(), thread.process_name.as_str()), ("worker", "server"));
}

#[test]
fn kernel_addresses_are_kept_as_they_are() {
    let mut tasks = Tasks::default();
    let kernel = Mmap {
        mode: CpuMode::Kernel,
        length: 0x10000,
        ..mmap(KERNEL_PID, 0xffff_0000, "[kernel.kallsyms]_text")
    };
    tasks.map(&kernel);
    let task = tasks.task(1, 1);
    let code = tasks.locate(task, CpuMode::Kernel, 0xffff_1234);
    assert_eq!(code.address, 0xffff_1234);
    assert!(code.kernel);
    assert_eq!(tasks.modules()[code.module.0 as usize].path, "[kernel.kallsyms]");
}

#[test]
fn a_thread_is_listed_once_for_each_control_group_that_it_is_in() {
    let mut tasks = Tasks::default();
    tasks.rename(10, 10, b"sh", false);
    let shell = tasks.task(10, 10);
    let first = tasks.thread(shell);
    tasks.in_cgroup(shell, 1);
    assert_eq!(tasks.thread(shell), first, "what it did before was in this group, too");
    tasks.in_cgroup(shell, 2);
    let second = tasks.thread(shell);
    tasks.in_cgroup(shell, 1);
    assert_eq!(tasks.thread(shell), first);
    tasks.in_cgroup(shell, 2);
    assert_eq!(tasks.thread(shell), second);
    // A child begins where its parent is; a new name changes no group.
    tasks.fork(&TaskChange { pid: 11, tid: 11, parent_pid: 10, parent_tid: 10 });
    tasks.rename(11, 11, b"app", true);
    tasks.task(12, 12);
    // The name may come last.
    tasks.name_cgroup(1, b"/system.slice/a.service");
    let (_, threads) = tasks.into_parts();
    let groups = threads.iter().map(|thread| (thread.name.as_str(), thread.cgroup.as_deref()));
    let named = Some("/system.slice/a.service");
    let other = Some("[control group 2]");
    let expected = [("sh", named), ("sh", other), ("sh", other), ("app", other), (":12", None)];
    assert_eq!(groups.collect::<Vec<_>>(), expected);
}

#[test]
fn mappings_are_what_the_kernel_calls_them() {
    for (path, kind) in [
        ("[vdso]", ModuleKind::Vdso),
        ("[vdso32]", ModuleKind::Vdso),
        ("//anon", ModuleKind::Anonymous),
        ("[anon]", ModuleKind::Anonymous),
        ("[anon:v8/code]", ModuleKind::Anonymous),
        ("/anon_hugepage (deleted)", ModuleKind::Anonymous),
        ("/memfd:jit (deleted)", ModuleKind::Anonymous),
        ("[heap]", ModuleKind::Anonymous),
        ("", ModuleKind::Anonymous),
        ("[vsyscall]", ModuleKind::Unknown),
        ("[uprobes]", ModuleKind::Unknown),
        ("/opt/app (deleted)", ModuleKind::File),
        ("/usr/lib/libc.so.6", ModuleKind::File),
    ] {
        assert_eq!(kind_of_path(path), kind, "{path}");
    }
    // Of a file the place is where it lies in the file, of others where it lies in memory.
    let mut tasks = Tasks::default();
    tasks.map(&mmap(10, 0x5000, "/opt/app (deleted)"));
    tasks.map(&mmap(10, 0x7000, "[anon:v8/code]"));
    assert_eq!(path_at(&mut tasks, 10, 0x5010), ("/opt/app (deleted)".into(), 0x2010));
    assert_eq!(path_at(&mut tasks, 10, 0x7010), ("[anon:v8/code]".into(), 0x7010));
}

#[test]
fn jit_functions_replace_each_other_over_time() {
    let mut tasks = Tasks::default();
    tasks.map(&mmap(10, 0x5000, "//anon"));
    assert_eq!(path_at(&mut tasks, 10, 0x5010), ("//anon".into(), 0x5010));
    tasks.map_jit_function(10, 0x5000, 0x100, "first");
    assert_eq!(path_at(&mut tasks, 10, 0x5010), ("first".into(), 0x10));
    tasks.map_jit_function(10, 0x5000, 0x100, "second");
    assert_eq!(path_at(&mut tasks, 10, 0x5010), ("second".into(), 0x10));
}
