"""`kubectl` for the tests: Secrets, ConfigMaps, and pods with their NetworkPolicies, in network
namespaces. Knows what the files in configs/kubernetes use, and takes nothing else.

    kubectl.py create|apply|wait|exec …
"""

import json
import os
import subprocess
import sys

import yaml

from namespaces import Container, expanded, hosts, joined, network, place, until

PODS = hosts("10.244.0.0/24")
# Users that a pod's volumes are for: an emptyDir is everybody's.
EVERYBODY = 0o777


def kept(kind, name, data):
    folder = place(kind, name)
    os.makedirs(folder, exist_ok=True)
    for key, text in data.items():
        with open(os.path.join(folder, key), "wb") as file:
            file.write(text)


def create(words):
    kind, name = ("secrets", words[2]) if words[0] == "secret" else ("configmaps", words[1])
    data = {}
    for word in (word for word in words if word.startswith("--from-file=")):
        key, _, path = word.removeprefix("--from-file=").rpartition("=")
        paths = [os.path.join(path, each) for each in os.listdir(path)] if os.path.isdir(path) else [path]
        for each in paths:
            with open(each, "rb") as file:
                data[key or os.path.basename(each)] = file.read()
    kept(kind, name, data)


def volume(pod, one):
    """Where the files of a volume lie."""
    if "emptyDir" in one:
        folder = place("pods", pod, one["name"])
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.chmod(folder, EVERYBODY)
        return folder
    if "configMap" in one:
        return place("configmaps", one["configMap"]["name"])
    if "secret" in one:
        return place("secrets", one["secret"]["secretName"])
    [source] = one["projected"]["sources"]
    return place("secrets", source["secret"]["name"])


def address(pod):
    return str(list(PODS.hosts())[9 + ["outgate", "agent"].index(pod)])


def environment(container):
    # Of each Service, as kubelet has it.
    found = {"OUTGATE_SERVICE_HOST": address("outgate")}
    for one in container.get("env", []):
        if "value" in one:
            found[one["name"]] = expanded(one["value"], found)
        elif "fieldRef" in one["valueFrom"]:
            assert one["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP", one
            found[one["name"]] = address("outgate")
        else:
            of = one["valueFrom"]["secretKeyRef"]
            with open(os.path.join(place("secrets", of["name"]), of["key"]), encoding="ascii") as file:
                found[one["name"]] = file.read().strip()
    return found


def container(pod, spec, one):
    security = {**spec.get("securityContext", {}), **one.get("securityContext", {})}
    capabilities = security["capabilities"]
    assert capabilities["drop"] == ["ALL"] and not security["allowPrivilegeEscalation"], one
    assert security["runAsUser"] == 0 or security["runAsNonRoot"], one
    added = [capability.lower() for capability in capabilities.get("add", [])]
    places = {volume_["name"]: volume(pod, volume_) for volume_ in spec["volumes"]}
    mounts = [(places[mount["name"]], mount["mountPath"]) for mount in one["volumeMounts"]]
    has = environment(one)
    command = [expanded(word, has) for word in one["command"]]
    made = Container(f"{pod}-{one['name']}", f"c-{pod}", security["runAsUser"], command, has, mounts, added)
    kept_as = vars(made)
    with open(place("containers", made.name), "w", encoding="ascii") as file:
        json.dump(kept_as, file)
    return made


def readable(folder):
    """Secrets are root's, and everybody's to read who has them mounted (mode 0644)."""
    for root, _, files in os.walk(folder):
        os.chmod(root, 0o755)
        for file in files:
            os.chmod(os.path.join(root, file), 0o644)


def pod(name, spec):
    assert not spec.get("hostNetwork") and not spec.get("shareProcessNamespace"), spec
    assert spec["automountServiceAccountToken"] is False, spec
    network("node", PODS)
    joined(name, 0, "node", f"{address(name)}/24", next(PODS.hosts()))
    for folder in ("secrets", "configmaps"):
        readable(place(folder))
    for one in spec.get("initContainers", []):
        made = container(name, spec, one)
        if one.get("restartPolicy") == "Always":
            served(made, one)
        else:
            assert made.run() == 0, f"{made.name} failed"
    for one in spec["containers"]:
        served(container(name, spec, one), one)


def served(made, one):
    made.start()
    probe = one.get("startupProbe") or one.get("readinessProbe")
    if probe:
        until(made.name, lambda: made.run(probe["exec"]["command"]) == 0)


def peers(rule, pods):
    """What a rule of a NetworkPolicy lets through, in the words of nftables."""
    ports = [f"tcp dport {port['port']}" for port in rule.get("ports", [])] or [""]
    for peer in rule.get("to", rule.get("from", [])):
        if "ipBlock" in peer:
            block = peer["ipBlock"]
            family = "ip6" if ":" in block["cidr"] else "ip"
            less = "".join(f"{family} daddr != {one} " for one in block.get("except", []))
            found = [f"{less}{family} daddr {block['cidr']}"]
        else:
            labels = peer["podSelector"]["matchLabels"].items()
            names = [name for name, has in pods.items() if labels <= has.items()]
            side = "daddr" if "to" in rule else "saddr"
            found = [f"ip {side} {address(name)}" for name in names]
        yield from (f"{one} {port} accept" for one in found for port in ports)


def enforced(policies, pods):
    """The policies of each pod, in its namespace as a network plugin has them before it."""
    for name, labels in pods.items():
        mine = [policy for policy in policies if policy["podSelector"]["matchLabels"].items() <= labels.items()]
        if not mine:
            continue
        rules = {"output": [], "input": []}
        for policy in mine:
            assert sorted(policy["policyTypes"]) == ["Egress", "Ingress"], policy
            rules["output"] += [line for rule in policy["egress"] for line in peers(rule, pods)]
            rules["input"] += [line for rule in policy["ingress"] for line in peers(rule, pods)]
        text = "table inet policies {\n"
        for chain, lines in rules.items():
            side = "oifname" if chain == "output" else "iifname"
            lines = [f'{side} "lo" accept', "meta l4proto ipv6-icmp accept", "ct state established,related accept", *lines]
            body = "\n".join(lines)
            text += f"chain {chain} {{\ntype filter hook {chain} priority -10\npolicy drop\n{body}\n}}\n"
        words = ["ip", "netns", "exec", f"c-{name}", "nft", "-f", "-"]
        subprocess.run(words, input=text + "}\n", text=True, check=True)


def apply(path):
    with open(path, encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    of = lambda kind: [one for one in documents if one["kind"] == kind]
    for one in of("ConfigMap"):
        kept("configmaps", one["metadata"]["name"], {key: text.encode() for key, text in one["data"].items()})
    templates = [(one["metadata"]["name"], one["spec"]["template"]) for one in of("DaemonSet")]
    templates += [(one["metadata"]["name"], one) for one in of("Pod")]
    for name, template in templates:
        pod(name, template["spec"])
    labels = {name: template["metadata"]["labels"] for name, template in templates}
    enforced([one["spec"] for one in of("NetworkPolicy")], labels)


def execute(words):
    name, words = words[0].removeprefix("ds/"), words[1:]
    which = {"agent": "agent", "outgate": "gateway"}[name]
    if words[0] == "-c":
        which, words = words[1], words[2:]
    assert words[0] == "--", words
    with open(place("containers", f"{name}-{which}"), encoding="ascii") as file:
        return Container(**json.load(file)).run(words[1:])


def main(words):
    verb, rest = words[0], words[1:]
    if verb == "create":
        create(rest)
    elif verb == "apply":
        assert rest[0] == "-f", rest
        apply(rest[1])
    elif verb == "exec":
        return execute(rest)
    else:
        assert verb == "wait", words
    return 0


sys.exit(main(sys.argv[1:]))
