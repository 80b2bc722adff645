//! Programs that end when eprof does.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::signal::Signal;

/// Lets a program that is started for eprof's own purposes be asked to end when eprof has ended, however that was. What is
/// watched is the thread that starts it: it must live as long as the program is wanted. The signal is SIGTERM, since shells
/// let what they start in the background ignore SIGINT.
pub fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGTERM)?));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;
    use std::thread;

    use super::*;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        // The reader sees the pipe's end when the program, its only writer, is gone.
        let started = thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("600").stdout(Stdio::piped());
            end_with_parent(&mut command);
            command.spawn().expect("sleep runs")
        });
        let mut child = started.join().expect("started");
        let mut rest = Vec::new();
        child.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("readable");
        let status = child.wait().expect("ended");
        assert!(!status.success(), "it was asked to end: {status}");
    }
}
