"""Two owners of one run on an object store, against a real S3 server on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from judgebias import object_lock
from judgebias.errors import Stopped, UsageError
from judgebias.object_lock import NAME, ObjectLock, owner, owning
from judgebias.objects import Found, ObjectStore
from tests.bucket import some_id

_HOLD = """
import sys
from judgebias.object_lock import owning
from judgebias.objects import ObjectStore
with owning(ObjectStore(sys.argv[1]), take_over=False):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(s3: str) -> ObjectStore:
    return ObjectStore(f"{s3}/{some_id()}")


def check_for_ten_seconds(lock: ObjectLock) -> None:
    for _ in range(200):
        lock.check()
        time.sleep(0.05)


def leave_lock(store: ObjectStore, *, host: str, pid: int = 1, beats: int = 3) -> None:
    said = {"host": host, "pid": pid, "since": "then", "token": "other", "beats": beats}
    store.write(NAME, json.dumps(said).encode())


def test_the_second_owner_is_refused_until_the_first_ends(store: ObjectStore) -> None:
    with owning(store, take_over=False):
        assert "process" in owner(store)
        script = [sys.executable, "-c", _HOLD, store.uri]
        second = subprocess.run(script, input="", capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert "is in use: host" in second.stderr
    assert owner(store) == ""
    with owning(store, take_over=False):
        pass


@pytest.mark.slow
def test_of_many_that_start_at_once_one_owns(store: ObjectStore) -> None:
    script = [sys.executable, "-c", _HOLD, store.uri]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(script, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        for _ in range(3)
    ]
    # One that holds the lock waits for its input to end, and the others are refused meanwhile.
    held = [process.stdout.readline() for process in started if process.stdout]
    for process in started:
        process.communicate("")
    assert sorted(held) == ["", "", "held\n"]


def test_a_killed_owner_of_this_host_holds_nobody_up(store: ObjectStore) -> None:
    script = [sys.executable, "-c", _HOLD, store.uri]
    pipe = subprocess.PIPE
    process = subprocess.Popen(script, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.kill()
    process.communicate()
    with owning(store, take_over=False):
        pass


def test_another_host_that_renews_is_never_taken_over_unless_told(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lock, "WATCH_S", 0.05)
    leave_lock(store, host="far")
    real = ObjectStore.look
    looks: list[str] = []

    def renewed_meanwhile(which: ObjectStore, name: str) -> tuple[bytes, Found]:
        looks.append(name)
        if looks.count(NAME) == 3:
            leave_lock(store, host="far", beats=4)
        return real(which, name)

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "look", renewed_meanwhile)
        with pytest.raises(UsageError, match="is in use: host far"), owning(store, take_over=False):
            pass
    with owning(store, take_over=True):
        pass


def test_another_host_that_is_silent_is_waited_for_and_taken_over(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lock, "WATCH_S", 0.05)
    monkeypatch.setattr(object_lock, "EXPIRED_S", 1.0)
    leave_lock(store, host="far")
    with owning(store, take_over=False):
        assert "far" not in owner(store)


def test_an_owner_that_was_replaced_stops(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lock, "RENEW_S", 0.05)
    with owning(store, take_over=False) as lock:
        lock.check()
        leave_lock(store, host="far", pid=7)
        with pytest.raises(Stopped, match="taken over by host far, process 7"):
            check_for_ten_seconds(lock)
    assert json.loads(store.read(NAME))["host"] == "far", "what another owns is left alone"


def test_a_renewal_whose_answer_was_lost_is_still_ours(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lock, "RENEW_S", 0.05)
    real = ObjectStore.replace
    beats: list[str] = []

    def answer_lost(which: ObjectStore, name: str, data: bytes, version: str) -> str:
        now = real(which, name, data, version)
        beats.append(now)
        if len(beats) == 2:
            raise OSError("no answer")
        return now

    monkeypatch.setattr(ObjectStore, "replace", answer_lost)
    with owning(store, take_over=False) as lock:
        for _ in range(200):
            lock.check()
            if len(beats) > 4:
                break
            time.sleep(0.05)
        assert len(beats) > 4


def test_an_owner_without_its_store_stops_before_another_may_start(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert object_lock.GIVE_UP_S + object_lock.RENEW_S < object_lock.EXPIRED_S
    monkeypatch.setattr(object_lock, "GIVE_UP_S", -1.0)
    with (
        owning(store, take_over=False) as lock,
        pytest.raises(Stopped, match="has not answered"),
    ):
        lock.check()
