"""Runs within a process: errors, notices, progress, signals, threads, forks."""

from __future__ import annotations

import gzip
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import pytest

import ringfold


def test_errors_have_a_place_and_can_be_pickled(files: Path) -> None:
    with pytest.raises(ringfold.DataError) as raised:
        ringfold.aggregate("bad.csv", by="city", agg="sum:price")
    error = raised.value
    assert (error.file, error.bytes, error.line, error.errno) == ("bad.csv", (18, 27), 3, None)
    assert "bad.csv: byte 18-27 (line 3): " in str(error)
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))

    with pytest.raises(ringfold.FileError) as missing:
        ringfold.aggregate("missing.csv", by="city")
    assert isinstance(missing.value, OSError)
    assert (missing.value.file, missing.value.errno) == ("missing.csv", 2)
    assert vars(pickle.loads(pickle.dumps(missing.value))) == vars(missing.value)


def test_errors_name_fields(files: Path) -> None:
    with pytest.raises(ringfold.UsageError, match="price >\n") as pointed:
        ringfold.aggregate("orders.csv", by="city", where="price >")
    assert str(pointed.value).splitlines()[-1].strip() == "^"
    with pytest.raises(ringfold.UsageError, match="quantile"):
        ringfold.aggregate("orders.csv", by="city", agg="quantile:price")
    with pytest.raises(ringfold.UsageError, match="engine"):
        ringfold.aggregate("orders.csv", by="city", engine="none")
    spelled = ringfold._errors.spelled
    assert spelled("`-H` takes it for names, `--no-header` for a record") == (
        "`header=True` takes it for names, `header=False` for a record"
    )
    assert spelled("try `-d ';' -H`, or raise --max-record") == "try `delimiter=';', header=True`, or raise max_record"
    assert spelled("`tr -d '\\0' <a` and `--null-value NA`") == "`tr -d '\\0' <a` and `null_value='NA'`"


def test_what_is_left_out_is_told(files: Path) -> None:
    with pytest.warns(ringfold.Notice, match="1 record skipped, the first at bad.csv byte 18 line 3") as told:
        answer = ringfold.aggregate("bad.csv", by="city", agg="sum:price", on_error="skip", rejects="rejects.csv")
    assert told[0].filename == __file__
    assert len(answer.notices) == 1
    assert answer.counts["skipped"] == 1
    assert "Oslo,many" in Path("rejects.csv").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ringfold.aggregate("orders.csv", by="city")


def test_progress(large: Path) -> None:
    ticks: list[tuple[int, int | None]] = []
    ringfold.aggregate(large, by="key", progress=lambda done, total: ticks.append((done, total)))
    size = large.stat().st_size
    assert ticks[-1] == (size, size)
    assert ticks == sorted(ticks, key=lambda tick: tick[0])
    ringfold.aggregate(large, by="key", progress=True)

    def fails(done: int, total: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ringfold.aggregate(large, by="key", progress=fails)


def test_threads_run_beside_each_other(large: Path, tmp_path: Path) -> None:
    want = ringfold.aggregate(large, by="key", agg="sum:price").text()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answers: list[bytes] = []
    run = lambda path: answers.append(ringfold.aggregate(path, by="key", agg="sum:price", threads=1).text())  # noqa: E731
    threads = [threading.Thread(target=run, args=(path,)) for path in (pipe, large, large, large)]
    for thread in threads:
        thread.start()
    # Python goes on meanwhile: it writes what one of them waits for.
    pipe.write_bytes(large.read_bytes())
    for thread in threads:
        thread.join()
    assert answers == [want] * 4


def run(code: str, *more: str, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", textwrap.dedent(code), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]


def test_ctrl_c_ends_a_run(tmp_path: Path) -> None:
    # A pipe that says nothing for ever.
    os.mkfifo(tmp_path / "pipe")
    code = """
        import os, signal, sys, time, ringfold
        # A shell leaves it ignored in what runs in its background.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("ready", flush=True)
        try:
            ringfold.aggregate(sys.argv[1], by=1, delimiter=",")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        for _ in range(100):
            if len(os.listdir("/proc/self/task")) == 1:
                break
            time.sleep(0.05)
        print("threads:", len(os.listdir("/proc/self/task")), flush=True)
    """
    with run(code, str(tmp_path / "pipe")) as child:
        writer = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        # More than is looked at before the run.
        data = b"a,1\nb,2\n" * 200_000
        while data and child.poll() is None:
            try:
                data = data[os.write(writer, data) :]
            except BlockingIOError:
                time.sleep(0.01)
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"interrupted\n"
        # The run's threads have ended, though the pipe is open.
        assert child.stdout.readline() == b"threads: 1\n"
        os.close(writer)
        assert child.wait(timeout=20) == 0


def test_a_fork_after_import_and_after_a_run(large: Path) -> None:
    code = """
        import multiprocessing, os, sys, ringfold
        path = sys.argv[1]
        query = ringfold.Query(by="key", agg="sum:price", sort="sum_price:desc", threads=2)
        def run(query):
            return query.aggregate(path).text()
        fork = multiprocessing.get_context("fork")
        with fork.Pool(2) as pool:
            before = pool.map(run, [query] * 2)
        answer = query.aggregate(path)
        own = answer.text()
        if (child := os.fork()) == 0:
            os._exit(0 if answer.text() == own and len(list(answer)) == len(answer) else 1)
        assert os.waitpid(child, 0)[1] == 0
        ringfold.describe(path)
        with fork.Pool(2) as pool:
            after = pool.map(run, [query] * 4)
        assert set(before) | set(after) == {own}
        print("same")
    """
    child = run(code, str(large))
    out, _ = child.communicate(timeout=120)
    assert (child.returncode, out) == (0, b"same\n")


def test_nothing_of_the_process_is_touched(files: Path) -> None:
    code = """
        import os, resource, signal, sys, ringfold
        def state():
            handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)}
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            return handlers, mask, limits, os.listdir("/proc/self/fd"), [os.fstat(fd)[:3] for fd in range(3)]
        before = state()
        for _ in range(3):
            ringfold.aggregate("orders.csv", by="city")
            ringfold.count("orders.csv")
        try:
            ringfold.aggregate("missing.csv", by="city")
        except ringfold.FileError:
            pass
        after = state()
        assert before == after, (before, after)
        print("same")
    """
    out, _ = run(code).communicate(timeout=60)
    assert out == b"same\n"


def test_the_program_is_there(files: Path) -> None:
    words = [sys.executable, "-m", "ringfold"]
    version = subprocess.run([*words, "--version"], check=True, stdout=subprocess.PIPE).stdout
    assert version.decode().split() == ["ringfold", ringfold.__version__]
    failed = subprocess.run([*words, "aggregate", "-k", "city", "missing.csv"], capture_output=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith(b"ringfold: missing.csv: ")
    assert subprocess.run([*words, "aggregate", "--nothing"], capture_output=True).returncode == 2


def test_values_that_look_like_flags(tmp_path: Path) -> None:
    for value in ("-", "-5x"):
        (tmp_path / "f.csv").write_text(f"a,b\ny,{value}\n")
        with pytest.raises(ringfold.DataError, match=f"`{value}` is not a number"):
            ringfold.aggregate(tmp_path / "f.csv", by="a", agg="sum:b")


def test_count_says_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"one\ntwo\n") + b"no more data")
    with pytest.warns(ringfold.Notice, match="12 bytes") as told:
        assert ringfold.count(tmp_path / "f.gz").lines == 2
    assert told[0].filename == __file__
