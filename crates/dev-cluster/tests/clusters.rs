//! A private cluster keeps its promises: starts, survives its own crash, restarts, is copied and leaves nothing.
#![expect(clippy::unwrap_used, reason = "a failed step is the test's failure")]

use backline_dev_cluster::pg::{Options, Session, state_dir};
use std::io;

#[test]
fn a_commit_survives_kill9_and_the_port_stays() {
    let mut cluster = Options::throwaway().unwrap().setting("max_connections", "20").start().unwrap();
    let (port, dir) = (cluster.port(), cluster.dir().to_owned());
    cluster.create_database("shop").unwrap();
    let mut session = cluster.session("shop").unwrap();
    assert_eq!(session.value("show max_connections").unwrap(), "20");
    session.run("create table t (n int); insert into t values (1), (2)").unwrap();

    cluster.kill9().unwrap();
    assert!(session.run("select 1").is_err(), "the old session died with its server");
    cluster.start_again().unwrap();

    assert_eq!(cluster.port(), port);
    assert_eq!(cluster.url("shop"), format!("postgres://postgres@127.0.0.1:{port}/shop"));
    assert_eq!(cluster.session("shop").unwrap().value("select sum(n) from t").unwrap(), "3");
    drop(cluster);
    assert!(!dir.exists(), "a throwaway cluster leaves nothing behind");
}

#[test]
fn a_kept_cluster_is_found_again_and_restarts_with_new_settings() {
    let tree = std::env::temp_dir().join(format!("backline-kept-{}", std::process::id()));
    std::fs::create_dir_all(&tree).unwrap();
    let dir = state_dir(&tree, "pg").unwrap();
    let mut first = Options::kept_in(&dir).start().unwrap();
    first.session("postgres").unwrap().run("create table t (n int)").unwrap();
    first.set("work_mem", "7MB").unwrap();
    first.restart().unwrap();
    assert_eq!(first.session("postgres").unwrap().value("show work_mem").unwrap(), "7MB");
    assert_eq!(first.session("postgres").unwrap().value("show fsync").unwrap(), "on");
    drop(first);

    let second = Options::kept_in(&dir).start().unwrap();
    assert_eq!(second.session("postgres").unwrap().value("select count(*) from t").unwrap(), "0");
    drop(second);
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::remove_dir_all(&tree).unwrap();
}

#[test]
fn a_promoted_standby_has_what_the_dead_primary_had_on_a_new_timeline() {
    let mut primary = Options::throwaway().unwrap().start().unwrap();
    primary.session("postgres").unwrap().run("create table t (n int)").unwrap();
    let standby = primary.standby().unwrap();
    primary.session("postgres").unwrap().run("insert into t values (42)").unwrap();
    standby.wait_caught_up(&primary).unwrap();
    let timeline = "select timeline_id from pg_control_checkpoint()";
    let before = primary.session("postgres").unwrap().value(timeline).unwrap();
    assert!(
        standby.session("postgres").unwrap().run("insert into t values (1)").is_err(),
        "a standby only reads"
    );

    primary.kill9().unwrap();
    standby.promote().unwrap();

    let mut session = standby.session("postgres").unwrap();
    assert_eq!(session.value("select n from t").unwrap(), "42");
    session.run("insert into t values (43)").unwrap();
    session.run("checkpoint").unwrap();
    assert_ne!(session.value(timeline).unwrap(), before);
}

#[test]
fn refusals_carry_the_servers_words() {
    let cluster = Options::throwaway().unwrap().start().unwrap();
    let missing = Session::connect(cluster.port(), "nowhere").unwrap_err();
    assert!(missing.to_string().contains("3D000"), "{missing}");
    let mut session = cluster.session("postgres").unwrap();
    let wrong = session.run("select 1; selec 2").unwrap_err();
    assert!(wrong.to_string().contains("42601"), "{wrong}");
    assert_eq!(session.value("select 1").unwrap(), "1", "the session goes on after an error");
    let taken = Options::throwaway().unwrap().port(cluster.port()).start().err().unwrap();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse, "{taken}");
}
