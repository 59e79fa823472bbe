# SPDX-License-Identifier: Apache-2.0
"""A server that gets thousands of requests, most of them hostile, stays up, right and small.

Usage: soak.py BINARY [REQUESTS]
"""
import json
import pathlib
import random
import socket
import subprocess
import sys
import time

JOB = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64, "tp": 2}
FIRST = 1000  # requests after which the memory is what it stays at
GROWTH = 1.05
SECRET = "root:x:0"


class Server:
    """`orrery web` on a port of its own."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary, "web", "--port", "0", "--quiet"], stdout=subprocess.PIPE,
                                        text=True)
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.rsplit(":", 1)[1].strip("/"))

    def send(self, raw, wait=20.0):
        """The bytes of the reply; what the server closed at once is empty."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as link:
            reply = b""
            try:
                link.sendall(raw)
                link.shutdown(socket.SHUT_WR)
                while piece := link.recv(1 << 16):
                    reply += piece
            except OSError:  # it closed first
                pass
            return reply

    def memory(self):
        """Kilobytes that the server holds."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))

    def close(self):
        self.process.terminate()
        return self.process.wait(timeout=30)


def request(server, path, body=None, headers=(), method=None, host=None):
    lines = [f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.1",
             f"Host: {host or f'127.0.0.1:{server.port}'}", "Connection: close", *headers]
    if body is not None:
        if not any(line.lower().startswith("content-type") for line in headers):
            lines.append("Content-Type: application/json")
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def odd_value(draw):
    return draw.choice([None, True, -1, 0, 1e308, 1e-320, 2**63, "", "NaN", "é\u0000", [], {}, [[[]]], "8k", "-",
                        "/etc/passwd", "../../../etc/passwd", "/etc", "/dev/zero", "x" * 5000,
                        {"based_on": "/etc/passwd"}, {"based_on": "dgx-h100"}, {"value": 1}])


def question(draw):
    """A good question, or one with something odd in it."""
    asked = dict(JOB, gpus=draw.choice([8, 16, 32, 64]), tp=draw.choice([1, 2, 4]))
    for _ in range(draw.choice([0, 0, 1, 1, 2])):
        key = draw.choice([*JOB, "pp", "vpp", "ep", "stack", "precision", "recompute", "zero", "faults", "trace_out",
                           "like", "memory_bandwidth", "power_cap", "stage_layers", "no_such", "context", "phase"])
        asked[key] = odd_value(draw)
    return asked


def odd_body(draw):
    return draw.choice([b"", b"{", b"null", b"[" * 20000, b'{"model":' * 3000, b"\xff\xfe", b'"' + b"a" * 100000,
                        bytes(draw.randrange(256) for _ in range(300)), b'{"a":1e99999}', b'{"model":"\\ud800"}'])


def one(server, draw):
    """A request, and the statuses that may answer it (none: the server may close without a word)."""
    kind = draw.randrange(12)
    command = draw.choice(["simulate"] * 6 + ["advise", "plan", "serve", "schedule"])
    if kind < 5:
        parts = draw.choice(["", "", "?parts=charts", "?parts=report,line", "?parts=nonsense", "?parts=page"])
        body = json.dumps(question(draw)).encode()
        return request(server, "/api/v1/simulate" + parts, body), {200, 400, 422}
    if kind == 5:
        return request(server, f"/api/v1/{command}", odd_body(draw)), {400}
    if kind == 6:
        path = draw.choice(["/", "/assets/app.js", "/assets/vega.js", "/api/v1/settings", "/api/v1/catalog/model",
                            "/api/v1/catalog/../../etc", "/assets/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                            "/api/v1/catalog/x", "/api/v1/openapi.json", "//etc/passwd", "/" + "a" * 6000])
        return request(server, path), {200, 400, 404, 431}
    if kind == 7:
        return request(server, "/api/v1/simulate", b"{}", host=draw.choice(["evil.example", "127.0.0.1:1", ""])), \
            {400, 403}
    if kind == 8:
        odd = draw.choice([["Origin: http://evil.example"], ["Content-Type: text/plain"], ["X: " + "y" * 30000],
                           ["Origin: null"], ["Content-Type: multipart/form-data; boundary=x"]])
        return request(server, "/api/v1/simulate", b"{}", headers=odd), {400, 403, 415, 431}
    if kind == 9:
        raw = draw.choice([b"GET", b"\x16\x03\x01\x02\x00" * 40, b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50,
                           b"POST /api/v1/simulate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
                           b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
                           b"PUT / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % server.port])
        return raw, None
    if kind == 10:
        chunk = b"%x\r\n%s\r\n" % (70000, b" " * 70000)
        head = request(server, "/api/v1/simulate", headers=["Transfer-Encoding: chunked",
                                                            "Content-Type: application/json"], method="POST")
        return head + chunk * draw.choice([1, 80]), None
    # Once in a while a search, which is a program of its own; its client has gone at once.
    if draw.random() < 0.9:
        return request(server, "/api/v1/stop", b"{}", headers=[f"Orrery-Client: {draw.random()}"]), {200}
    body = json.dumps(dict(JOB, gpus=8, time_limit=0.2)).encode() if command != "serve" else b"{}"
    return request(server, "/api/v1/advise" if command != "serve" else "/api/v1/serve", body,
                   headers=[f"Orrery-Client: {draw.random()}", "Accept: text/event-stream"]), None


def status_of(reply):
    return int(reply.split(b" ", 2)[1])


def soak(server, binary, count, seed):
    draw = random.Random(seed)
    statuses, kept, begin = {}, 0, time.monotonic()
    for number in range(1, count + 1):
        raw, expected = one(server, draw)
        reply = server.send(raw)
        assert SECRET.encode() not in reply, f"request {number} read a file: {raw[:300]}"
        if expected is not None:
            assert reply.startswith(b"HTTP/1.1 "), f"request {number}: no reply to {raw[:300]}"
            assert status_of(reply) in expected, f"request {number}: {reply[:500]} to {raw[:500]}"
        if reply:
            statuses[status_of(reply)] = statuses.get(status_of(reply), 0) + 1
        if number == FIRST:
            kept = server.memory()
    print(f"{count} requests in {time.monotonic() - begin:.1f} s, statuses {dict(sorted(statuses.items()))}")
    good = server.send(request(server, "/api/v1/simulate", json.dumps(JOB).encode()))
    line = [word for key, value in JOB.items() for word in ("--" + key.replace("_", "-"), str(value))]
    told = subprocess.run([binary, "simulate", *line, "--json"], capture_output=True, check=True).stdout
    assert good.split(b"\r\n\r\n", 1)[1] == told, "the server answers with other bytes than the command line"
    if count > FIRST:
        now = server.memory()
        print(f"memory: {kept / 1024:.1f} MB after {FIRST} requests, {now / 1024:.1f} MB after {count}")
        assert now <= GROWTH * kept, "the server's memory grows"


def main(binary, count="1000"):
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    server = Server(binary)
    try:
        soak(server, binary, int(count), seed)
    finally:
        code = server.close()
    assert code == 0, f"the server ended with {code}"


if __name__ == "__main__":
    main(*sys.argv[1:])
