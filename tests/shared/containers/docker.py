"""`docker compose` for the tests: the services of compose.yaml in the working directory, as
the real program reads it, in network namespaces.

    docker.py compose build|run|up|exec|kill|down …
"""

import json
import os
import subprocess
import sys

from namespaces import Container, ended, hosts, ip, joined, network, place, until

CONFIG = json.loads(
    subprocess.run(
        [os.environ["COMPOSE"], "--profile", "*", "config", "--format", "json"],
        check=True, stdout=subprocess.PIPE,
    ).stdout
)
OUTSIDE = hosts("172.31.79.0/24")


def mounts(service):
    for volume in service.get("volumes", []):
        source = volume["source"]
        if volume["type"] == "volume":
            source = place("volumes", source)
            if not os.path.exists(source):
                # As the image has it there.
                os.makedirs(source, mode=0o750)
                os.chown(source, 65532, 65532)
        yield source, volume["target"]


def container(name, in_networks=True):
    service = CONFIG["services"][name]
    user = (service.get("user") or "10001").split(":")[0]
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service, service
    assert service["security_opt"] == ["no-new-privileges:true"], service
    for key in ("privileged", "network_mode", "pid", "ports", "devices"):
        assert not service.get(key) or (key, service[key]) == ("network_mode", "none"), service
    space = f"c-{name}" if in_networks else None
    # Compose doubles what it does not replace.
    command = [word.replace("$$", "$") for word in service["command"] or []]
    environment = service.get("environment") or {}
    return Container(name, space, user, command, environment, list(mounts(service)))


def join(name):
    for number, (net, options) in enumerate(sorted(CONFIG["services"][name]["networks"].items())):
        config = CONFIG["networks"][net]
        if config.get("internal"):
            within = hosts(config["ipam"]["config"][0]["subnet"])
            options_of_driver = config.get("driver_opts", {})
            assert options_of_driver["com.docker.network.bridge.inhibit_ipv4"] == "true"
            network(net, None)
            gateway = None
        else:
            within = OUTSIDE
            network(net, within)
            gateway = next(within.hosts())
        free = list(within.hosts())[100 + sorted(CONFIG["services"]).index(name)]
        address = (options or {}).get("ipv4_address", str(free))
        joined(name, number, net, f"{address}/{within.prefixlen}", gateway)


def up():
    for name in ("gateway", "agent"):
        service = CONFIG["services"][name]
        one = container(name)
        token = place("environment", name)
        with open(token, "w", encoding="ascii") as kept:
            json.dump(one.environment, kept)
        if os.path.exists(place("running", name)):
            continue
        join(name)
        one.start()
        if "healthcheck" in service:
            test = service["healthcheck"]["test"]
            assert test[0] == "CMD", test
            until(name, lambda: one.run(test[1:]) == 0)


def main(words):
    assert words[0] == "compose", words
    verb, rest = words[1], words[2:]
    if verb == "run":
        assert rest[0] == "--rm", rest
        return container(rest[1], in_networks=False).run()
    if verb == "up":
        up()
    elif verb == "exec":
        one = container(rest[0])
        with open(place("environment", rest[0]), encoding="ascii") as kept:
            one.environment = json.load(kept)
        return one.run(rest[1:])
    elif verb == "down":
        ended(["agent", "gateway", "world"])
        for name in ("c-agent", "c-gateway", "net-inside", "net-outside"):
            ip("netns", "del", name)
    else:
        assert verb == "build", words
    return 0


sys.exit(main(sys.argv[1:]))
