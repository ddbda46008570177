"""Cases of one check: each prints one line that `cargo xtask peers` counts, and a failed one does not stop the next."""

import faulthandler
import sys
import time
import traceback

# No check takes a third of this; a hung one ends with every thread's stack in its log.
faulthandler.dump_traceback_later(300, exit=True)
_failed = []


def case(name, run):
    """Runs one case: `ok NAME`, or `FAILED NAME: reason` with the traceback on standard error."""
    try:
        run()
    except Exception as error:  # noqa: BLE001 - whatever a foreign client raises is the finding
        traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        print(f"FAILED {name}: {reason}", flush=True)
        _failed.append(name)
    else:
        print(f"ok {name}", flush=True)


def finish():
    """Ends the process: 1 when a case failed."""
    sys.exit(1 if _failed else 0)


def same(what, got, wanted):
    """Fails unless both are equal."""
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def raises(kind, run):
    """The error of the given type that `run` must raise."""
    try:
        result = run()
    except kind as error:
        return error
    raise AssertionError(f"wanted {kind.__name__}, got {result!r}")


def eventually(what, check, limit=30.0):
    """Asks until the answer is true, at most `limit` seconds; returns the answer."""
    end = time.monotonic() + limit
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"timed out after {limit} s waiting for {what}"
        time.sleep(0.05)  # other processes have no event to wait for
