//! A child process is read by its log and obeys its signals.
#![expect(clippy::unwrap_used, reason = "a failed step is the test's failure")]

use backline_dev_cluster::process::Launch;
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn log(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("backline-{name}-{}.log", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn script(name: &str, text: &str) -> Launch {
    Launch::new("/bin/sh", log(name)).arg("-c").arg(text)
}

#[test]
fn the_address_is_read_and_a_restart_reads_its_own_lines() {
    let launch = script("address", "echo \"listening on 127.0.0.1:$PORT\"; exec sleep 600");
    let mut first = launch.clone().env("PORT", "1").start().unwrap();
    assert_eq!(first.wait_listening(LIMIT).unwrap().port(), 1);
    first.kill9().unwrap();
    assert_eq!(first.exited().unwrap(), Some(137));
    let mut second = launch.env("PORT", "2").start().unwrap();
    assert_eq!(second.wait_listening(LIMIT).unwrap().port(), 2);
    std::fs::remove_file(second.log()).unwrap();
}

#[test]
fn an_orderly_end_keeps_its_exit_code() {
    let mut child = script("orderly", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done")
        .start()
        .unwrap();
    child.wait_for_line("up", LIMIT, |line| line == "up").unwrap();
    child.terminate().unwrap();
    assert_eq!(child.wait_exit(LIMIT).unwrap(), 3);
    assert_eq!(child.log_text(), "up\nbye\n");
    std::fs::remove_file(child.log()).unwrap();
}

#[test]
fn a_paused_process_says_nothing_until_it_is_resumed() {
    let mut child = script("paused", "echo up; while :; do echo tick; sleep 0.01; done").start().unwrap();
    child.wait_for_line("tick", LIMIT, |line| line == "tick").unwrap();
    child.pause().unwrap();
    assert!(child.wait_exit(Duration::from_millis(50)).is_err());
    let length = child.log_text().len();
    assert!(child.wait_exit(Duration::from_millis(100)).is_err());
    assert_eq!(child.log_text().len(), length);
    child.resume().unwrap();
    while child.log_text().len() == length {
        std::thread::yield_now();
    }
    std::fs::remove_file(child.log()).unwrap();
}

#[test]
fn a_failed_start_quotes_the_log() {
    let mut child = script("failing", "echo \"PROJECT is not set\" >&2; exit 2").start().unwrap();
    let error = child.wait_listening(LIMIT).unwrap_err().to_string();
    assert!(error.contains("code 2") && error.contains("PROJECT is not set"), "{error}");
    std::fs::remove_file(child.log()).unwrap();
    let missing = Launch::new("/nowhere/backline", log("missing")).start().err().unwrap();
    assert!(missing.to_string().contains("is not built"), "{missing}");
}
