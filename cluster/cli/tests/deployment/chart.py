"""Lints the chart, renders it for each case in ci/, and validates what comes out.

    python chart.py CHART OUT

Writes the configuration of each rendered Deployment into OUT: CASE-POOL.toml, and CASE-POOL.env with the variables
that the pod sets. Prints each mistake on a line of its own; the exit code is 1 if there is one.
"""

import json
import pathlib
import sys

import helm_python as helm
import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.34"
TEXT, LABELS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}


def exactly(properties, required=()):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


RULE = exactly({"alert": TEXT, "expr": TEXT, "for": TEXT, "labels": LABELS, "annotations": LABELS}, ["alert", "expr"])
GROUP = exactly({"name": TEXT, "interval": TEXT, "rules": {"type": "array", "items": RULE}}, ["name", "rules"])
# The kinds that are no part of Kubernetes, as far as the chart uses them.
OTHERS = {
    ("monitoring.coreos.com/v1", "PodMonitor"): exactly(
        {
            "selector": exactly({"matchLabels": LABELS}),
            "podMetricsEndpoints": {
                "type": "array",
                "items": exactly({"port": TEXT, "path": TEXT, "interval": {"type": "string", "pattern": r"^\d+[smh]$"}}),
            },
        },
        ["selector", "podMetricsEndpoints"],
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): exactly({"groups": {"type": "array", "items": GROUP}}, ["groups"]),
}
# What kubernetes-validate does not check: the values of enumerations.
ENUMS = {
    "imagePullPolicy": {"Always", "IfNotPresent", "Never"},
    "externalTrafficPolicy": {"Cluster", "Local"},
    "ipFamilyPolicy": {"SingleStack", "PreferDualStack", "RequireDualStack"},
    "whenUnsatisfiable": {"DoNotSchedule", "ScheduleAnyway"},
    "unhealthyPodEvictionPolicy": {"IfHealthyBudget", "AlwaysAllow"},
}


def enums(value, at=""):
    if isinstance(value, dict):
        for key, below in value.items():
            if key in ENUMS and below not in ENUMS[key]:
                yield f"{at}.{key} = {below!r}: expected one of {sorted(ENUMS[key])}"
            yield from enums(below, f"{at}.{key}")
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield from enums(below, f"{at}[{i}]")


def mistakes(resource):
    schema = OTHERS.get((resource["apiVersion"], resource["kind"]))
    try:
        if schema:
            jsonschema.validate(resource["spec"], schema)
        else:
            kubernetes_validate.validate(resource, KUBERNETES, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        yield f"{list(getattr(error, 'absolute_path', getattr(error, 'path', [])))}: {error.message}"
    except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError) as error:
        yield f"unknown kind: {error}"
    yield from enums(resource)


def variables(container):
    """The variables of a container, as a pod with these requests and this address has them."""
    known = {"status.podIP": "2001:db8::7", "metadata.name": "purview-pod-1"}
    requests, told = container["resources"]["requests"], {}
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            value = known[source["fieldRef"]["fieldPath"]]
        elif "resourceFieldRef" in source:
            assert source["resourceFieldRef"]["resource"] == "requests.cpu"
            cores = float(requests["cpu"])
            value = str(round(cores * {"1": 1, "1m": 1000}[source["resourceFieldRef"]["divisor"]]))
        else:
            value = variable["value"].replace("$(POD_IP)", known["status.podIP"])
        told[variable["name"]] = value
    return told


def render(chart, case, values):
    found, resources = [], []
    for name, text in sorted(chart.render(values, name="game", namespace="play").items()):
        if not name.endswith((".yaml", ".yml")):
            continue
        resources += [resource for resource in yaml.safe_load_all(text) if resource]
    for resource in resources:
        name = f"{resource['kind']}/{resource['metadata']['name']}"
        found += [f"{case}: {name}: {mistake}" for mistake in mistakes(resource)]
    return resources, found


def main(folder, out):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    found = []
    cases = {"default": {}}
    for path in sorted(folder.glob("ci/*-values.yaml")):
        cases[path.name.removesuffix("-values.yaml")] = yaml.safe_load(path.read_text())
    summary = {}
    for case, values in cases.items():
        lint = helm.lint(str(folder), values, strict=True)
        found += [f"{case}: lint: {message}" for message in lint.get("messages", []) if "icon is recommended" not in str(message)]
        with helm.Chart.load(str(folder)) as chart:
            resources, wrong = render(chart, case, values)
        found += wrong
        config = [r for r in resources if r["kind"] == "ConfigMap"][0]["data"]["purview.toml"]
        for deployment in (r for r in resources if r["kind"] == "Deployment"):
            pod = deployment["spec"]["template"]["spec"]
            pool = deployment["metadata"]["labels"]["purview/pool"]
            told = variables(pod["containers"][0])
            told["GRACE_PERIOD"] = str(pod["terminationGracePeriodSeconds"])
            (out / f"{case}-{pool}.toml").write_text(config)
            (out / f"{case}-{pool}.env").write_text(json.dumps(told))
        summary[case] = sorted(f"{r['kind']}/{r['metadata']['name']}" for r in resources)
    # Values that the schema must refuse.
    for wrong in [{"pool": {}}, {"image": {"tga": "1"}}, {"pools": {"nodes": {"role": "king"}}}, {"tls": {"mode": "plain"}},
                  {"settings": {"gateway.brust": 7}}, {"settings": {"gateway.burst": 0}}, {"settings": {"cluster.lease": "5"}},
                  {"pools": {"nodes": {"settings": {"log.format": "jason"}}}}]:
        try:
            with helm.Chart.load(str(folder)) as chart:
                chart.render(wrong, name="game", namespace="play")
            found.append(f"the schema accepts {wrong}")
        except helm.HelmError:
            pass
    (out / "summary.json").write_text(json.dumps(summary))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
