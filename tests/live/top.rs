//! `eprof top`: as lines, and in a terminal, which tmux is.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use eprof_testbed::{Started, eprof, run_or_skip, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::record::attach::start;
use super::record::harness::{Folder, can_record, stderr};
use super::record::workload;

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The heads of the pictures: `2: 1.002 s, 5.000 W ESTIMATED, not measured, functions ...`.
fn heads(output: &Output) -> Vec<String> {
    let is_head =
        |line: &String| line.split_once(": ").is_some_and(|(number, _)| number.parse::<u64>().is_ok());
    lines(output).into_iter().filter(is_head).collect()
}

/// The watts behind a word.
fn watts(head: &str, part: &str) -> f64 {
    let behind = head.split_once(part).unwrap_or_else(|| panic!("{part} in {head}")).1;
    behind.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_programs_functions_are_told_until_it_ends_with_its_status() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let output = eprof()
        .args(["top", "-n", "10000", "-d", "0.3", "--meter", "estimate", "--watts", "2:10", "--"])
        .args(["sh", "-c", "timeout 2 sh -c 'while :; do :; done'; exit 7"])
        .current_dir(folder.path())
        .output()
        .expect("eprof runs");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let heads = heads(&output);
    assert!(!heads.is_empty(), "{}", stderr(&output));
    for head in &heads {
        assert!(head.contains("ESTIMATED, not measured"), "{head}");
        let all = watts(head, " s, ");
        let parts = ["functions ", "static ", "others ", "eprof ", "lost "];
        let sum: f64 = parts.into_iter().map(|part| watts(head, part)).sum();
        // Each is rounded to a milliwatt.
        assert!((sum - all).abs() < 0.004, "{sum} of {all} W: {head}");
    }
    assert!(lines(&output).iter().any(|line| line.contains("FUNCTION")));
    // Each picture is of one time: its rows' watts are those of its functions, and its domains' watts are all of it. Joules
    // are those so far.
    let lines = lines(&output);
    let pictures = lines.split(|line| line.is_empty()).filter(|picture| picture.len() > 2);
    let column =
        |row: &String, at: usize| row.split_whitespace().nth(at).and_then(|it| it.parse::<f64>().ok());
    let mut count = 0;
    let mut so_far = 0.0;
    for picture in pictures {
        let [head, domain, _, rows @ ..] = picture else { panic!("{picture:?}") };
        let seconds = watts(head, ": ");
        let functions = watts(head, "functions ");
        let sum = |at: usize| rows.iter().filter_map(|row| column(row, at)).sum::<f64>();
        // Rounded to a thousandth each.
        let rounded = 0.0006 * (rows.len() as f64 + 1.0);
        assert!((sum(0) - functions).abs() < rounded, "{} of {functions} W: {picture:#?}", sum(0));
        so_far += functions * seconds;
        match count {
            0 => assert!((sum(2) - so_far).abs() < rounded, "{} of {so_far} J: {picture:#?}", sum(2)),
            // What has not run in this time has no row.
            _ => assert!(sum(2) < so_far + rounded * f64::from(count + 1), "{} of {so_far} J", sum(2)),
        }
        for row in rows {
            let [Some(watts), Some(joules)] = [0, 2].map(|at| column(row, at)) else { panic!("{row}") };
            assert!(joules > watts * seconds - 0.0015 * seconds.max(1.0), "{row}, in {seconds} s");
        }
        let of_domain = column(domain, 1).expect("watts");
        assert!((of_domain - watts(head, " s, ")).abs() < 0.002, "{domain}: {head}");
        count += 1;
    }
    assert!(count >= 2, "{lines:#?}");
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none(), "nothing is written");
}

#[test]
fn a_running_process_is_watched_so_many_times_and_goes_on() {
    if !can_record() {
        return;
    }
    let program = start("spin:60000");
    let output = eprof()
        .args(["top", "--iterations", "2", "-d", "0.2", "--by", "process", "-p"])
        .arg(program.id().to_string())
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(heads(&output).len(), 2);
    assert!(lines(&output).iter().any(|line| line.contains(&format!("({})", program.id()))));
    kill(Pid::from_raw(program.id() as i32), None::<Signal>).expect("it runs");
}

#[test]
fn rows_may_be_lines() {
    if !can_record() {
        return;
    }
    let program = start("spin:60000");
    let output = eprof()
        .args(["top", "--iterations", "2", "-d", "0.3", "--by", "line", "-p"])
        .arg(program.id().to_string())
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = lines(&output);
    assert!(lines.iter().any(|line| line.contains("SHARE  LINE")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(".rs:")), "{lines:#?}");
}

#[test]
fn what_cannot_be_watched_is_an_error_with_its_status() {
    if !can_record() {
        return;
    }
    let status = |arguments: &[&str]| {
        let output = eprof().arg("top").args(arguments).stdin(Stdio::null()).output().expect("eprof runs");
        (output.status.code(), stderr(&output))
    };
    assert_eq!(status(&["--", "/nowhere/to/be/found"]).0, Some(127));
    let (code, said) = status(&["-p", "4194304"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("4194304"), "{said}");
    assert_eq!(status(&["-d", "0"]).0, Some(2));
    let (code, said) = status(&["-d", "-1"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("give seconds above 0") && !said.contains("-- -1"), "{said}");
    let (code, said) = status(&["-p", "nginx"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("`pgrep nginx`"), "{said}");
    // The command beside -p only tells how long.
    let program = start("spin:60000");
    let (_, said) = status(&["-d", "0.1", "-p", &program.id().to_string(), "--", "sleep", "0.3"]);
    assert!(said.contains("is watched, until sleep ends"), "{said}");
    assert_eq!(status(&["--", "true"]).0, Some(0), "a program that ends at once");
    assert_eq!(status(&["--", "sh", "-c", "kill -9 $$"]).0, Some(137));
}

/// A terminal of its own, gone with the value.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// Runs a shell's line in a terminal of this size; `None` without tmux.
    fn start(name: &str, (columns, rows): (u16, u16), line: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
            skip("tmux is not installed");
            return None;
        }
        let tmux = Self { socket: format!("eprof-test-{}-{name}", std::process::id()) };
        let size = [columns.to_string(), rows.to_string()];
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], line]);
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-L", &self.socket])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen has a text, a minute at most.
    fn wait_for(&self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "no {text:?} in\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn line(folder: &Folder, variables: &str, arguments: &str) -> String {
    let eprof = eprof().get_program().to_string_lossy().into_owned();
    let folder = folder.path().display();
    // The shell tells the terminal's settings before and after, and how the view ended.
    format!(
        "cd {folder}; stty -g > before; env {variables} {eprof} top {arguments}; echo ended: $?; stty -g > after; \
         cat; sleep 60"
    )
}

/// A running program, and the view of it in a terminal of this name; `None` where there is no terminal.
fn watched(name: &str) -> Option<(Started, Folder, Tmux)> {
    let program = start("spin:60000");
    let folder = Folder::new();
    let arguments = format!("-d 0.3 --meter estimate --watts 2:10 -p {}", program.id());
    let command = line(&folder, "LC_ALL=C.UTF-8", &arguments);
    Tmux::start(name, (80, 24), &command).map(|tmux| (program, folder, tmux))
}

#[test]
fn the_view_is_drawn_answers_keys_and_leaves_the_terminal_as_it_was() {
    if !can_record() {
        return;
    }
    let Some((program, folder, tmux)) = watched("keys") else { return };
    let screen = tmux.wait_for(" W ESTIMATED: functions ");
    assert!(screen.starts_with("eprof top  functions by watts, last 0."), "{screen}");
    assert!(screen.contains('█'), "a sparkline: {screen}");
    tmux.keys(&["?"]);
    tmux.wait_for("Keys (any key goes back)");
    tmux.keys(&["x", "b", "b"]);
    tmux.wait_for(&format!("({})", program.id()));
    tmux.keys(&["Enter"]);
    tmux.wait_for("only process");
    // The windows that are there already get lines, too.
    tmux.keys(&["b"; 6]);
    tmux.wait_for("lines by watts");
    tmux.wait_for(".rs:");
    tmux.keys(&["b"]);
    tmux.wait_for("functions by watts");
    tmux.keys(&["w"]);
    // As long as it has been there, at the beginning.
    tmux.wait_for("functions by watts, last ");
    tmux.wait_for(" s  only process");
    tmux.keys(&["/", "n", "o", "n", "e", "Enter"]);
    tmux.wait_for("/none/");
    tmux.wait_for("nothing that matches /none/ ran in this time");
    tmux.keys(&["/", "Enter", "BSpace", "Space"]);
    tmux.wait_for("HELD");
    // What is held is held in other spans, too, and goes on when it is let go.
    tmux.keys(&["w"]);
    tmux.wait_for("since start (");
    let seconds = || {
        let screen = tmux.screen();
        let text = screen.split("since start (").nth(1).and_then(|rest| rest.split(" s)").next());
        text.and_then(|text| text.parse::<f64>().ok()).unwrap_or_else(|| panic!("a time: {screen}"))
    };
    let held = seconds();
    std::thread::sleep(Duration::from_millis(1000));
    tmux.keys(&["w", "w", "w"]);
    tmux.wait_for("since start (");
    assert_eq!(seconds(), held);
    tmux.keys(&["Space"]);
    let started = Instant::now();
    while seconds() <= held {
        assert!(started.elapsed() < Duration::from_secs(60), "still {held} s in\n{}", tmux.screen());
        std::thread::sleep(Duration::from_millis(50));
    }
    tmux.keys(&["Space"]);
    tmux.wait_for("HELD");
    tmux.keys(&["S"]);
    tmux.wait_for("saved: eprof report eprof-top-1.data");
    for (columns, rows) in [(1, 1), (200, 50), (80, 24)] {
        tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        std::thread::sleep(Duration::from_millis(150));
    }
    tmux.wait_for("HELD");
    tmux.keys(&["q"]);
    tmux.wait_for("ended: 0");
    let file = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    super::record::harness::wait_until("the shell", || !file("after").is_empty());
    assert_eq!(file("before"), file("after"), "the terminal is as it was");
    let report = eprof()
        .args(["report", "--format", "json", "-i"])
        .arg(folder.path().join("eprof-top-1.data"))
        .output()
        .expect("eprof runs");
    assert!(report.status.success(), "{}", stderr(&report));
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let balance = &report["domains"][0]["balance"];
    assert!(balance["attributed"].as_f64().is_some_and(|joules| joules > 0.0), "{balance}");
}

/// A filter of processes would hide nearly all functions of the one that it found.
#[test]
fn enter_shows_all_functions_of_a_process_that_a_filter_found() {
    if !can_record() {
        return;
    }
    let Some((program, _folder, tmux)) = watched("filter") else { return };
    tmux.wait_for(" W ESTIMATED: functions ");
    tmux.keys(&["b", "b"]);
    tmux.wait_for("processes by watts");
    let number = program.id().to_string();
    tmux.keys(&["/", &number, "Enter"]);
    let filtered = format!("/{number}/");
    tmux.wait_for(&format!(" s  {filtered}"));
    tmux.keys(&["Enter"]);
    let screen = tmux.wait_for(&format!("all functions: {filtered} is taken away"));
    let head = screen.lines().next().unwrap_or_default();
    assert!(head.contains("functions by watts") && head.contains("only process"), "{screen}");
    assert!(!head.contains(&filtered) && !screen.contains("nothing that matches"), "{screen}");
    tmux.keys(&["q"]);
    tmux.wait_for("ended: 0");
}

/// `spin` sets up no frame, so that a chain of frame pointers goes from it to the caller of `heavy`.
const LEAF: &str = r"
static volatile unsigned long sink;
__attribute__((noinline)) unsigned long spin(unsigned long rounds, unsigned long value) {
    for (unsigned long i = 0; i < rounds; i++) value = value * 6364136223846793005u + (value >> 29);
    return value;
}
__attribute__((noinline)) void heavy(void) { sink += spin(1000000, sink); sink += 1; }
int main(void) { for (;;) heavy(); }
";

#[test]
fn the_caller_of_a_function_without_a_frame_is_its_own_or_said_to_be_missing() {
    if !cfg!(target_arch = "x86_64") || !can_record() {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.path().join("leaf.c"), LEAF).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer", "leaf.c", "-o", "leaf"])
        .current_dir(folder.path());
    if !run_or_skip([&mut gcc]) {
        return;
    }
    for (how, name) in [("", "leaf"), ("--call-graph fp", "fp")] {
        let arguments = format!("-d 0.5 --meter estimate --watts 2:10 {how} -- timeout 120 ./leaf");
        let command = line(&folder, "LC_ALL=C.UTF-8", &arguments);
        let Some(tmux) = Tmux::start(name, (120, 24), &command) else { return };
        tmux.wait_for("  spin ");
        tmux.keys(&["c"]);
        let screen = tmux.wait_for("callers of spin");
        let caller = screen.lines().skip_while(|line| !line.contains("callers of spin")).nth(1);
        let caller = caller.and_then(|row| row.split_whitespace().nth(1));
        let is_marked = screen.contains("of all samples lack a caller");
        match how {
            "" => assert_eq!((caller, is_marked), (Some("heavy"), false), "{screen}"),
            _ => assert_eq!((caller, is_marked), (Some("main"), true), "{screen}"),
        }
        tmux.keys(&["q"]);
        tmux.wait_for("ended: 0");
    }
}

#[test]
fn what_the_program_writes_comes_out_behind_the_view() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // Both streams, in turns, so many lines that a terminal would not hold them; then it waits to be seen.
    let script = "i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; [ -t 1 ] && [ -t 2 ] \
                  && echo terminals; echo '\\033[1mready\\033[0m'; read line < go; trap 'echo asked to end; exit 5' TERM; \
                  echo waiting; while :; do sleep 0.1; done";
    std::fs::write(folder.path().join("program"), script).expect("written");
    nix::unistd::mkfifo(&folder.path().join("go"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let eprof = eprof().get_program().to_string_lossy().into_owned();
    let path = folder.path().display();
    let command = format!("cd {path}; {eprof} top -d 0.3 -- sh program; echo ended: $?; sleep 60");
    let Some(tmux) = Tmux::start("output", (80, 24), "exec sleep 600") else { return };
    // What a new window then keeps of what has run off its screen.
    tmux.run(&["set-option", "-g", "history-limit", "20000"]);
    tmux.run(&["new-window", &command]);
    // With a picture, so that the view comes to something.
    tmux.wait_for("WATTS");
    let screen = tmux.wait_for("output: ready");
    assert!(!screen.contains("err 1999"), "over the picture: {screen}");
    std::fs::write(folder.path().join("go"), "\n").expect("it reads");
    tmux.wait_for("output: waiting");
    tmux.keys(&["q"]);
    // It was asked to end, said so, and has the status that it gave.
    tmux.wait_for("ended: 5");
    let all = tmux.run(&["capture-pane", "-p", "-S", "-"]);
    let expected: Vec<String> = (0..2000).flat_map(|at| [format!("out {at}"), format!("err {at}")]).collect();
    let found: Vec<&str> =
        all.lines().filter(|line| line.starts_with("out ") || line.starts_with("err ")).collect();
    assert_eq!(found, expected, "all of it, in its order");
    let behind = all.split("err 1999").nth(1).expect("the rest");
    let words: Vec<&str> = behind.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
    assert_eq!(words, ["terminals", "ready", "waiting", "asked to end"]);
    assert!(behind.contains("WATTS"), "what the view came to is last: {behind}");
}

#[test]
fn the_programs_terminal_is_as_large_as_the_view_and_keys_are_the_views() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // It would take the keys, and it tells the size at first and whenever it hears of another.
    let script = "exec 3>&1; trap 'echo resized $(stty size <&3)' WINCH; cat > keys; echo at first $(stty size <&3); \
                  while :; do sleep 0.1; done";
    std::fs::write(folder.path().join("program"), script).expect("written");
    let eprof = eprof().get_program().to_string_lossy().into_owned();
    let path = folder.path().display();
    let command = format!("cd {path}; {eprof} top -d 0.3 -- sh program; echo ended: $?; sleep 60");
    let Some(tmux) = Tmux::start("size", (80, 24), &command) else { return };
    tmux.wait_for("output: at first 24 80");
    for (columns, rows) in [("200", "50"), ("100", "30")] {
        tmux.run(&["resize-window", "-x", columns, "-y", rows]);
        tmux.wait_for(&format!("output: resized {rows} {columns}"));
    }
    tmux.keys(&["?"]);
    tmux.wait_for("Keys (any key goes back)");
    tmux.keys(&["x", "q"]);
    tmux.wait_for("ended: 0");
    assert_eq!(std::fs::read_to_string(folder.path().join("keys")).expect("it was made"), "");
}

#[test]
fn what_is_piped_in_is_the_programs_and_keys_are_the_views() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.path().join("program"), "read line; echo got $line; sleep 60").expect("written");
    let eprof = eprof().get_program().to_string_lossy().into_owned();
    let path = folder.path().display();
    let command =
        format!("cd {path}; echo piped | {eprof} top -d 0.3 -- sh program; echo ended: $?; sleep 60");
    let Some(tmux) = Tmux::start("piped", (80, 24), &command) else { return };
    tmux.wait_for("output: got piped");
    tmux.keys(&["q"]);
    tmux.wait_for("ended: 0");
}

#[test]
fn a_plain_terminal_gets_plain_letters_and_signals_restore_it() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let words = workload::command("spin:60000");
    let workload = words.join(std::ffi::OsStr::new(" ")).to_string_lossy().into_owned();
    let command = line(&folder, "NO_COLOR=1 LC_ALL=en_US.ISO-8859-1", &format!("-d 0.3 -- {workload}"));
    let Some(tmux) = Tmux::start("plain", (80, 24), &command) else { return };
    tmux.wait_for("functions by watts");
    let screen = tmux.wait_for("WATTS");
    assert!(screen.is_ascii(), "{screen}");
    // 39 and 49 are the terminal's own colors.
    let colored = tmux.run(&["capture-pane", "-p", "-e"]).replace("[39m", "").replace("[49m", "");
    assert!(!colored.contains("\u{1b}[3") && !colored.contains("\u{1b}[4"), "{colored:?}");
    // The program is interrupted, and its end is the view's.
    tmux.keys(&["C-c"]);
    tmux.wait_for("ended: 130");
    let file = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    super::record::harness::wait_until("the shell", || !file("after").is_empty());
    assert_eq!(file("before"), file("after"), "the terminal is as it was");
}

#[test]
fn a_terminal_that_is_closed_ends_the_view() {
    if !can_record() {
        return;
    }
    let program = start("spin:60000");
    let folder = Folder::new();
    let eprof = eprof().get_program().to_string_lossy().into_owned();
    let (id, path) = (program.id(), folder.path().display());
    let command = format!("cd {path}; echo $$ > view; exec {eprof} top -d 0.3 -p {id}");
    let Some(tmux) = Tmux::start("closed", (80, 24), &command) else { return };
    tmux.wait_for("WATTS");
    let view = std::fs::read_to_string(folder.path().join("view")).expect("its process id");
    let view = Path::new("/proc").join(view.trim());
    assert!(view.exists());
    drop(tmux);
    super::record::harness::wait_until("the view's end", || !view.exists());
}
