//! Who runs the server: PostgreSQL refuses to run as root, so root lends it to an ordinary account.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// The account of the server's processes: our own, or another one when ours is root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    lent_to: Option<(u32, u32)>,
}

impl Identity {
    /// Our own account, or `postgres`, else `nobody`, when we are root.
    pub(crate) fn choose() -> io::Result<Identity> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Identity { lent_to: None });
        }
        // Directory services matter only to people's accounts; these two are local everywhere.
        let accounts = fs::read_to_string("/etc/passwd")?;
        match account(&accounts, "postgres").or_else(|| account(&accounts, "nobody")) {
            Some(ids) => Ok(Identity { lent_to: Some(ids) }),
            None => Err(io::Error::other(
                "running as root, and neither `postgres` nor `nobody` exists to run PostgreSQL",
            )),
        }
    }

    /// The user id that owns the cluster's files.
    pub(crate) fn uid(self) -> u32 {
        self.lent_to.map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid)
    }

    pub(crate) fn is_lent(self) -> bool {
        self.lent_to.is_some()
    }

    /// Gives `path` to the account.
    pub(crate) fn give(self, path: &Path) -> io::Result<()> {
        match self.lent_to {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }

    /// Makes `command` run as the account, with messages in English and a directory that it may enter.
    pub(crate) fn assume(self, command: &mut Command) {
        if let Some((uid, gid)) = self.lent_to {
            command.uid(uid).gid(gid);
        }
        command.current_dir("/").env("LC_ALL", "C");
        // A caller's own PGOPTIONS, PGDATA or PGPORT must not reach a private cluster.
        for name in
            ["PGDATA", "PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS", "PGSSLMODE"]
        {
            command.env_remove(name);
        }
    }
}

fn account(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn accounts_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:7::/:\npostgres:x:101:104:PostgreSQL,,,:/var:/bin/sh\n";
        assert_eq!(account(passwd, "postgres"), Some((101, 104)));
        assert_eq!(account(passwd, "nobody"), None);
    }
}
