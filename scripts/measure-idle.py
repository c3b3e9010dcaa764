#!/usr/bin/env python3
"""Measures what many databases cost that are not used: start, memory, threads, descriptors, and the first call of each.

    python3 scripts/measure-idle.py <spacetimedb-standalone> <boards.wasm> [databases] [open at a time]
"""

import concurrent.futures
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

program, module = sys.argv[1:3]
databases = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
opened = min(int(sys.argv[4]) if len(sys.argv) > 4 else 200, databases)
CONFIG = """[databases]
idle-close-after = "{idle}"
[limits]
databases-max = 100000
databases-per-owner-max = 100000
names-max = 200000
names-per-owner-max = 200000
[commitlog]
preallocate-segments = false
"""


class Server:
    def __init__(self, directory, idle):
        os.makedirs(f"{directory}/data", exist_ok=True)
        with open(f"{directory}/data/config.toml", "w") as file:
            file.write(CONFIG.format(idle=idle))
        started = time.time()
        arguments = [program, "start", "--non-interactive", "--listen-addr", "127.0.0.1:0"]
        arguments += ["--data-dir", f"{directory}/data", "--jwt-key-dir", f"{directory}/keys"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            found = re.search(r"listening on (\S+)", line)
            if found:
                self.address = found[1]
                break
        # A server whose output is not read stands still.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.ask("GET", "/v1/ping")
        self.start_s = time.time() - started

    def connection(self):
        return http.client.HTTPConnection(self.address, timeout=120)

    def ask(self, method, path, body=None, token=None, connection=None):
        connection = connection or self.connection()
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, (path, answer.status, text)
        return text

    def open_count(self):
        return int(re.search(rb"^lightcone_databases_open (\d+)", self.ask("GET", "/v1/metrics"), re.M)[1])

    def until_open_are(self, count):
        while self.open_count() != count:
            time.sleep(0.1)

    def state(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        number = lambda key: int(re.search(rf"{key}:\s+(\d+)", status)[1])
        descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return {"MB": round(number("VmRSS") / 1024, 1), "threads": number("Threads"), "descriptors": descriptors}

    def stop(self):
        started = time.time()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return round(time.time() - started, 2)


def percentiles(times):
    times = sorted(times)
    at = lambda share: round(1000 * times[int(share * (len(times) - 1))], 1)
    return f"median {at(0.5)} ms, 99 % {at(0.99)} ms, longest {at(1)} ms"


def call(server, number, token):
    started = time.time()
    server.ask("POST", f"/v1/database/d{number}/call/put", json.dumps([number, 1, 2]), token)
    return time.time() - started


with tempfile.TemporaryDirectory() as directory:
    code = open(module, "rb").read()
    server = Server(directory, "2s")
    print("an empty server:", server.state())
    token = json.loads(server.ask("POST", "/v1/identity"))["token"]
    started = time.time()
    publish = lambda number: server.ask("PUT", f"/v1/database/d{number}", code, token)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in pool.map(publish, range(databases)):
            pass
    print(f"{databases} databases are published in {time.time() - started:.0f} s; {server.open_count()} are open")
    server.until_open_are(0)
    time.sleep(15)
    print("all are closed:", server.state())
    print("stop:", server.stop(), "s")
    for attempt in range(3):
        server = Server(directory, "1h")
        print(f"start with {databases} closed databases: {server.start_s:.2f} s", server.state())
        if attempt < 2:
            server.stop()
    assert server.open_count() == 0
    print("first call of a closed database:", percentiles([call(server, number, token) for number in range(opened)]))
    print("second call:", percentiles([call(server, number, token) for number in range(opened)]))
    print(f"{opened} are open:", server.state())
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        numbers = range(opened, min(2 * opened, databases))
        print("16 first calls at a time:", percentiles(list(pool.map(lambda number: call(server, number, token), numbers))))
    print(f"{server.open_count()} are open:", server.state())
    print("stop with these:", server.stop(), "s")
    server = Server(directory, "1h")
    print(f"start: {server.start_s:.2f} s; open: {server.open_count()}")
    server.process.kill()
    server.process.wait()
    size = subprocess.check_output(["du", "-sk", f"{directory}/data"]).split()[0]
    print(f"{int(size) / databases:.0f} KB of the disk for each")
