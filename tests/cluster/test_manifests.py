"""What is shipped for a cluster: checked by schema and linter, because no cluster runs it here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from judgebias.config.runfile import load_run_file
from judgebias.pipeline.place import SUBMITTED

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "cluster"
KUBERNETES = "1.32"


def closed(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    """A mapping with these keys and no other."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


TEXT, COUNT, FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
STRINGS = {"type": "object", "additionalProperties": TEXT}
TEMPLATE = {"type": "object"}
# The fields of ray.io/v1 RayJob that are in use here, with the types its CRD gives them.
RAY_JOB = closed(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata={"type": "object", "required": ["name"]},
    spec=closed(
        ("entrypoint", "rayClusterSpec"),
        entrypoint=TEXT,
        backoffLimit=COUNT,
        shutdownAfterJobFinishes=FLAG,
        ttlSecondsAfterFinished=COUNT,
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode"]},
        rayClusterSpec=closed(
            ("headGroupSpec", "rayVersion"),
            rayVersion=TEXT,
            authOptions=closed(("mode",), mode={"enum": ["token", "disabled"]}),
            enableInTreeAutoscaling=FLAG,
            autoscalerOptions=closed((), idleTimeoutSeconds=COUNT),
            headGroupSpec=closed(("template",), rayStartParams=STRINGS, template=TEMPLATE),
            workerGroupSpecs={
                "type": "array",
                "items": closed(
                    ("groupName", "template"),
                    groupName=TEXT,
                    replicas=COUNT,
                    minReplicas=COUNT,
                    maxReplicas=COUNT,
                    rayStartParams=STRINGS,
                    template=TEMPLATE,
                ),
            },
        ),
    ),
)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CLUSTER / "rayjob.yaml").read_text()))


@pytest.fixture(scope="module")
def job(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return next(one for one in documents if one["kind"] == "RayJob")


def pods(job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    ray = job["spec"]["rayClusterSpec"]
    workers = {group["groupName"]: group["template"] for group in ray["workerGroupSpecs"]}
    return {"head": ray["headGroupSpec"]["template"], **workers}


def test_the_job_has_the_fields_of_its_kind(job: dict[str, Any]) -> None:
    jsonschema.validate(job, RAY_JOB)


def test_what_kubernetes_itself_reads_passes_its_schemas(
    documents: list[dict[str, Any]], job: dict[str, Any]
) -> None:
    plain = [one for one in documents if one["apiVersion"] == "v1"]
    plain += [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **template}
        for name, template in pods(job).items()
    ]
    assert len(plain) == 3
    for one in plain:
        kubernetes_validate.validate(one, KUBERNETES, strict=True)


def test_the_schemas_refuse_what_is_wrong(job: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**job, "spec": {**job["spec"], "entryPoint": "x"}}, RAY_JOB)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"container": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_keys_come_from_a_secret_alone_and_the_run_file_is_one(
    documents: list[dict[str, Any]], job: dict[str, Any], tmp_path: Path
) -> None:
    for template in pods(job).values():
        (container,) = template["spec"]["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "judge-keys"}}]
        assert not [one for one in container["env"] if "KEY" in one["name"]]
    run = tmp_path / "run.toml"
    run.write_text(documents[0]["data"]["run.toml"])
    config = load_run_file(run)
    assert config.out.startswith("s3://")
    head = pods(job)["head"]["spec"]["containers"][0]["env"]
    waits = {one["name"]: one["value"] for one in head}["RAY_JOB_STOP_WAIT_TIME_S"]
    assert float(waits) == config.engine.grace_s + 5


def test_the_versions_are_those_that_are_pinned(job: dict[str, Any]) -> None:
    pins = (ROOT / "constraints.txt").read_text()
    assert f"ray=={job['spec']['rayClusterSpec']['rayVersion']}\n" in pins
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    for template in pods(job).values():
        assert template["spec"]["containers"][0]["image"] == f"judgebias:{version[1]}"


def test_the_paths_of_the_job_are_in_the_image(job: dict[str, Any]) -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (CLUSTER / "Dockerfile").read_text(), re.MULTILINE)
    sources = " ".join(copied).split()
    assert all((ROOT / source).exists() for source in sources)
    for path in re.findall(r"/app/(\S+)", job["spec"]["entrypoint"]):
        assert (ROOT / path).exists()
        assert any(path == source or path.startswith(f"{source}/") for source in sources)


def test_the_dockerfile_passes_its_linter() -> None:
    linter = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [str(linter), str(CLUSTER / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("codes", "ends_with", "starts"),
    [("0", 0, 1), ("4 4 0", 0, 3), ("4 3", 3, 2), ("2", 2, 1), ("70", 70, 1), ("4 4 4 4", 4, 3)],
)
def test_the_wrapper_resumes_on_4_alone(
    tmp_path: Path, codes: str, ends_with: int, starts: int
) -> None:
    script = tmp_path / "job"
    script.write_text(
        "#!/usr/bin/env bash\n"
        f'codes=({codes}); n=$(cat "{tmp_path}/n" 2>/dev/null || echo 0)\n'
        f'echo $((n + 1)) >"{tmp_path}/n"; exit "${{codes[$n]}}"\n'
    )
    environ = {**os.environ, "RESUME_AFTER_S": "0", "RESUMES": "2"}
    command = ["bash", str(CLUSTER / "resume"), "bash", str(script)]
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    assert done.returncode == ends_with
    assert int((tmp_path / "n").read_text()) == starts


@pytest.mark.parametrize("submitted", [False, True])
def test_the_wrapper_stops_its_command_by_one_signal_and_does_not_resume(
    tmp_path: Path, submitted: bool
) -> None:
    script = tmp_path / "job"
    script.write_text(
        "#!/usr/bin/env bash\n"
        f"over=''; trap 'echo told >>\"{tmp_path}/told\"; over=1' TERM\n"
        f'echo $$ >"{tmp_path}/up"; until [ -n "$over" ]; do sleep 0.1; done\n'
        "for _ in 1 2 3 4 5; do sleep 0.1; done; exit 4\n"
    )
    environ = {**os.environ, "RESUME_AFTER_S": "0"}
    if submitted:
        environ[SUBMITTED] = "{}"
    process = subprocess.Popen(["bash", str(CLUSTER / "resume"), "bash", str(script)], env=environ)
    pid = ""
    for _ in range(300):
        if pid := (tmp_path / "up").read_text() if (tmp_path / "up").exists() else "":
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    if submitted:
        # `ray job stop` tells the driver and each of its children.
        os.kill(int(pid), signal.SIGTERM)
    assert process.wait(timeout=30) == 4
    assert (tmp_path / "told").read_text() == "told\n"


def test_a_stop_in_the_moment_of_the_start_reaches_the_command(tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text(
        "#!/usr/bin/env bash\n"
        "over=''; trap 'over=1' TERM; kill -TERM $PPID\n"
        'for _ in {1..100}; do [ -n "$over" ] && exit 4; sleep 0.1; done; exit 7\n'
    )
    environ = {**os.environ, "RESUME_AFTER_S": "0"}
    for _ in range(5):
        command = ["bash", str(CLUSTER / "resume"), "bash", str(script)]
        assert subprocess.run(command, env=environ, check=False, timeout=60).returncode == 4


@pytest.mark.parametrize("name", ["two_nodes", "resume"])
def test_the_scripts_are_bash_that_parses_and_keep_authentication_on(name: str) -> None:
    script = CLUSTER / name
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    assert os.access(script, os.X_OK)
    assert "RAY_AUTH_MODE=disabled" not in script.read_text()
