#!/usr/bin/env python3
"""Time and memory of an agent program against a model that answers at once.

    python3 tests/performance.py                      postroom, from target/release or $POSTROOM
    python3 tests/performance.py -n 50 -- CMD ARG...  another program, e.g. `claude -p hello`
    python3 tests/performance.py --turns 1000         postroom, in one long conversation

A server on loopback speaks chat completions and Anthropic's Messages API. Its address is handed over in
OPENAI_BASE_URL and ANTHROPIC_BASE_URL. Each program is run in a fresh folder, first with a model that
answers `done`, then with one that first calls eight subagents in one turn. Wall time is from the start of
the process to its end; memory is the highest resident set of the process, without those it starts.
"""

import argparse, json, os, pathlib, shutil, statistics, subprocess, sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIRST = 100
BINARY = pathlib.Path(os.environ.get("POSTROOM", pathlib.Path(__file__).resolve().parent.parent / "target/release/postroom"))
SUBAGENT_TOOLS = ("subagent", "Task", "Agent", "task")
CHILDREN = 8
scenario = {"children": 0, "turns": 0}


def subagent_calls(tools):
    """Eight calls of whatever tool starts subagents here, filled in as its schema wants."""
    for tool in tools:
        spec = tool.get("function", tool)
        if spec["name"] not in SUBAGENT_TOOLS:
            continue
        schema = spec.get("parameters") or spec.get("input_schema") or {}
        values = {"agent_type": "explore", "subagent_type": "general-purpose"}
        needed = schema.get("required", [])
        wanted = {key: values.get(key, "say done") for key in needed}
        return [(spec["name"], wanted)] * scenario["children"]
    return []


def think(body):
    """What the model says: calls in the first turn of whoever was not started by one, else `done`."""
    if scenario["turns"]:
        is_summary = not body.get("tools")
        is_over = Model.requests > scenario["turns"]
        return [] if is_summary or is_over else [("read_file", {"path": "text.txt"})]
    text = json.dumps(body["messages"][1:] if body["messages"][0]["role"] == "system" else body["messages"])
    is_child = "say done" in text and "tool_result" not in text and '"tool"' not in text
    has_results = '"tool_result"' in text or '"role": "tool"' in text
    return [] if is_child or has_results else subagent_calls(body.get("tools", []))


def chat(calls, read):
    delta = {"role": "assistant", "content": "" if calls else "done"}
    if calls:
        delta["tool_calls"] = [
            {"index": i, "id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for i, (name, given) in enumerate(calls)
        ]
    yield {"choices": [{"index": 0, "delta": delta}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    yield {"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": 10, "total_tokens": read + 10}}


def messages(calls, read):
    usage = {"input_tokens": read, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    blocks = [{"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": {}} for i, (name, _) in enumerate(calls)]
    deltas = [{"type": "input_json_delta", "partial_json": json.dumps(given)} for _, given in calls]
    if not calls:
        blocks, deltas = [{"type": "text", "text": ""}], [{"type": "text_delta", "text": "done"}]
    for i, (block, delta) in enumerate(zip(blocks, deltas)):
        yield {"type": "content_block_start", "index": i, "content_block": block}
        yield {"type": "content_block_delta", "index": i, "delta": delta}
        yield {"type": "content_block_stop", "index": i}
    reason = "tool_use" if calls else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # As real servers do: else the second write of an answer waits 40 ms for the client to acknowledge the first.
    disable_nagle_algorithm = True
    requests = 0
    times = []

    def do_POST(self):
        Model.times.append(time.perf_counter())
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        Model.requests += 1
        is_chat = self.path.endswith("/chat/completions")
        calls = think(body)
        events = (chat if is_chat else messages)(calls, length // 4)
        lines = [("" if is_chat else f"event: {e['type']}\n") + f"data: {json.dumps(e)}\n\n" for e in events]
        answer = ("".join(lines) + ("data: [DONE]\n\n" if is_chat else "")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def peak_of(pid):
    """The highest resident set so far, in MB. `ru_maxrss` would count this script's own, too."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return max((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), default=0)


def run(command, environment, watched):
    """Wall time in milliseconds, and, where it is watched, memory in MB, which costs time."""
    folder = tempfile.mkdtemp()
    try:
        if command is None:
            command = postroom(folder)
        began = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        peak = 0
        while watched and child.poll() is None:
            peak = max(peak, peak_of(child.pid))
        printed = child.stdout.read()
        child.wait()
        took = (time.perf_counter() - began) * 1000
        if child.returncode != 0 or b"done" not in printed:
            sys.exit(f"{command} ended with {child.returncode}:\n{printed.decode()}")
        return took, peak
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postroom(folder):
    """postroom, with a team of one in `folder`."""
    if not BINARY.exists():
        sys.exit(f"there is no {BINARY}: cargo build --release")
    team = pathlib.Path(folder) / "teams/one.json"
    team.parent.mkdir()
    (pathlib.Path(folder) / "text.txt").write_text("a line of some length\n" * 100)
    kind = "tireless" if scenario["turns"] else "general-purpose"
    team.write_text(
        '{"provider": "openai", "providers": {"openai": {"compact_at": 30000}},'
        ' "agents": {"tireless": {"description": "goes on", "max_turns": 100000}},'
        f' "teammates": {{"lead": {{"type": "{kind}"}}}}}}'
    )
    return [str(BINARY), "run", "say it"]


def long(turns, environment):
    """How long the first and the last turns of one conversation took."""
    scenario["turns"], Model.requests = turns, 0
    for watched in (False, True):
        Model.times, Model.requests = [], 0
        _, peak = run(None, environment, watched)
        if not watched:
            gaps = [(b - a) * 1000 for a, b in zip(Model.times, Model.times[1:])]
    first, last = (statistics.median(part) for part in (gaps[:FIRST], gaps[-FIRST:]))
    print(
        f"{turns} turns: the median of the first {FIRST} is {first:.2f} ms, of the last {FIRST} {last:.2f} ms, "
        f"at most {peak:.1f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=30, help="how often each is run")
    parser.add_argument("--turns", type=int, help="measure so many turns of one conversation instead")
    parser.add_argument("command", nargs="*", help="the program, behind --")
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    environment = {**os.environ, "OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}
    environment |= {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "OPENAI_MODEL": "m"}
    if given.turns:
        return long(given.turns, environment)
    for name, children in (("one turn", 0), (f"{CHILDREN} subagents in one turn", CHILDREN)):
        scenario["children"] = children
        Model.requests = 0
        times = [run(given.command or None, environment, False)[0] for _ in range(given.n)]
        requests = Model.requests / given.n
        memory = max(run(given.command or None, environment, True)[1] for _ in range(3))
        print(
            f"{name}: median {statistics.median(times):.1f} ms, fastest {min(times):.1f} ms, "
            f"at most {memory:.1f} MB, {requests:g} requests"
        )


if __name__ == "__main__":
    main()
