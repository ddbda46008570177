//! Nothing outlives the process that started it, even when that process is killed and runs no destructor.
#![expect(clippy::unwrap_used, reason = "a failed step is the test's failure")]

use backline_dev_cluster::pg::{Options, Session};
use backline_dev_cluster::process::Launch;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// When set, this test binary plays the parent that will be killed.
const ROLE: &str = "DEV_CLUSTER_PARENT";

#[test]
fn parent_to_be_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let cluster = Options::throwaway().unwrap().start().unwrap();
    let child = Launch::new("/bin/sleep", cluster.dir().with_extension("child")).arg("600").start().unwrap();
    println!("ready {} {} {}", cluster.port(), child.pid(), cluster.dir().display());
    // Ends when the pipe to the real test does, should that one fail.
    let _ = std::io::stdin().lines().next();
}

#[test]
fn a_killed_parent_takes_server_data_and_children_along() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "parent_to_be_killed", "--nocapture"])
        .env(ROLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines
        .into_iter()
        .find_map(|line| line.split_once("ready ").map(|(_, rest)| rest.to_owned()))
        .unwrap();
    let parts: Vec<&str> = line.split(' ').collect();
    let [port, pid, dir] = parts[..] else { unreachable!("three words were printed: {line}") };
    let port: u16 = port.parse().unwrap();
    assert!(Session::connect(port, "postgres").is_ok());

    parent.kill().unwrap();
    parent.wait().unwrap();

    // The shell's own `kill`: small systems have no program of that name.
    let alive =
        |pid: &str| Command::new("sh").args(["-c", "kill -0 $0", pid]).output().unwrap().status.success();
    let started = Instant::now();
    while Session::connect(port, "postgres").is_ok()
        || alive(pid)
        || std::path::Path::new(dir).join("data").exists()
    {
        assert!(started.elapsed() < Duration::from_secs(20), "still there: server, {pid} or {dir}");
        std::thread::yield_now();
    }
    let _ = std::fs::remove_dir(dir);
    let _ = std::fs::remove_file(std::path::Path::new(dir).with_extension("child"));
}
